"""Training byte-level BPE of a thousand merges on a megabyte, beside the library's own."""

import gc
import json
import random
import time
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from statistics import median
from typing import Any

from streamlit.testing.v1 import AppTest
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer

from explorer.text.bpe_training import in_parts, train_merges
from explorer.text.tokenizer import BYTES
from explorer.views.shared.tokenizer_source import FILE
from tests import apps
from tests.benchmarks.driver import BARE
from tests.benchmarks.measuring import Row, compared, milliseconds, timed
from tests.views.drawing import steps_of

MERGES, SIZE = 1_000, 1_000_000
STEP_GOAL = 0.1


def made_up() -> str:
    """Lines of words by Zipf's law, some with capitals and punctuation, always the same."""
    draw = random.Random(11)
    onsets = "b br c ch d f g gr h l m n p pr r s sh st t th tr w".split()
    ends = "a e i o u ai ea ou an en in on er or al es ed ing".split()
    syllables = [onset + end for onset in onsets for end in ends]
    lengths = (1, 1, 2, 2, 3)
    words = ["".join(draw.choices(syllables, k=draw.choice(lengths))) for _ in range(20_000)]
    sums = list(accumulate(1 / (rank + 3) for rank in range(len(words))))
    lines = []
    for length in range(0, SIZE, 40):
        line = draw.choices(words, cum_weights=sums, k=7 + length % 3)
        line[0] = line[0].capitalize()
        lines.append(" ".join(line) + draw.choice((".", ",", "?", "\n", "'s one")))
    return "\n".join(lines)[:SIZE]


def as_the_library_trains(texts: list[str]) -> list[tuple[str, str]]:
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = BpeTrainer(vocab_size=BYTES + MERGES, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator(texts, trainer)
    merges: list[Any] = json.loads(library.to_str())["model"]["merges"]
    return [(left, right) for left, right in merges]


def bpe_training() -> Iterator[Row]:
    text = made_up()
    trained, parts = train_merges(text, MERGES), in_parts(text)
    found = [(trained.tokens[left], trained.tokens[right]) for left, right, _ in trained.merges]
    assert found == as_the_library_trains(parts)
    measured = timed(partial(train_merges, text, MERGES), partial(as_the_library_trains, parts))
    what = f"training {MERGES:,} byte-level BPE merges on 1 MB"
    yield compared(what, measured, "of the tokenizers library on the same parts", 1.2)
    gc.collect()
    spent = []
    for step in jumps(len(trained.merges), 11, 13, 60):
        begun = time.process_time()
        trained.counts_after(step)
        spent.append(time.process_time() - begun)
    yield each_step("the pair counts of one of these merges", spent)


def jumps(last: int, on: int, back: int, anywhere: int) -> Iterator[int]:
    """The longest jump, for which nothing is kept yet; a walk forward, one back, and jumps."""
    yield last
    yield from range(0, last + 1, on)
    yield from range(last, -1, -back)
    yield from random.Random(3).choices(range(last + 1), k=anywhere)


def each_step(
    what: str, spent: list[float], reference: str = "–", ratio: float | None = None
) -> Row:
    """The goal is for the slowest."""
    ours = f"p50 {milliseconds(median(spent))}, slowest {milliseconds(max(spent))}"
    goal = f"≤ {milliseconds(STEP_GOAL)} each"
    return Row(what, ours, reference, ratio, goal, max(spent) <= STEP_GOAL)


def steps_of_the_page() -> Iterator[Row]:
    """The whole page anew, more than the fragment that a step draws."""
    at = apps.page("input/tokenizer_training", learn_from=FILE, learn_rules=str(MERGES))
    at.file_uploader(key="learn_file").upload("mine.txt", made_up().encode()).run()
    bare_page, spent, bare = AppTest.from_string(BARE).run(), [], []
    for turn, step in enumerate(jumps(MERGES, 43, 47, 30)):
        at.session_state["learn_step"] = step
        spent.append(seconds_of_run(at))
        assert steps_of(at, "learn_step") == MERGES + 1
        bare_page.segmented_control[0].set_value(str(turn % 2))
        bare.append(seconds_of_run(bare_page))
    reference = median(bare)
    what = f"the page's script for one of {MERGES:,} merges trained on 1 MB"
    beside = f"p50 {milliseconds(reference)} of a bare page's script"
    yield each_step(what, spent, beside, median(spent) / reference)


def seconds_of_run(at: AppTest) -> float:
    begun = time.perf_counter()
    at.run()
    taken = time.perf_counter() - begun
    assert not at.exception
    return taken
