"""Learning a thousand byte-level rules on a megabyte, beside the library's own training."""

from __future__ import annotations

import gc
import json
import random
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Library
from tokenizers import models, pre_tokenizers
from tokenizers.trainers import BpeTrainer

from explorer.text.counting import in_parts
from explorer.text.learning import BYTES, Learnt, learn
from tests.benchmarks.figure import milliseconds, quantile, report
from tests.benchmarks.ratio import ratio

RULES, SIZE = 1_000, 1_000_000
BAR, STEP_BAR, WALKS = 1.2, 0.1, 3
SHAKESPEARE = Path(__file__).resolve().parents[3] / "shared" / "data" / "shakespeare.txt"


def made_up() -> str:
    """Lines of words by Zipf's law, some with capitals and punctuation, always the same."""
    draw = random.Random(11)
    onsets = "b br c ch d f g gr h l m n p pr r s sh st t th tr w".split()
    ends = "a e i o u ai ea ou an en in on er or al es ed ing".split()
    syllables = [onset + end for onset in onsets for end in ends]
    words = [
        "".join(draw.choices(syllables, k=draw.choice((1, 1, 2, 2, 3)))) for _ in range(20_000)
    ]
    sums = list(accumulate(1 / (rank + 3) for rank in range(len(words))))
    lines = []
    for length in range(0, SIZE, 40):
        line = draw.choices(words, cum_weights=sums, k=7 + length % 3)
        line[0] = line[0].capitalize()
        lines.append(" ".join(line) + draw.choice((".", ",", "?", "\n", "'s one")))
    return "\n".join(lines)[:SIZE]


TEXTS = {"made up": made_up}
if SHAKESPEARE.is_file():
    TEXTS["Shakespeare"] = lambda: SHAKESPEARE.read_text("utf-8")[:SIZE]


def as_the_library_learns(texts: list[str]) -> list[tuple[str, str]]:
    library = Library(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = BpeTrainer(vocab_size=BYTES + RULES, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator(texts, trainer)
    merges: list[Any] = json.loads(library.to_str())["model"]["merges"]
    return [(left, right) for left, right in merges]


def steps(learnt: Learnt) -> Iterator[int]:
    """The longest jump, for which nothing is kept yet; a walk forward, one back, and jumps."""
    last = len(learnt.rules)
    yield last
    yield from range(0, last + 1, 11)
    yield from range(last, -1, -13)
    yield from random.Random(3).choices(range(last + 1), k=60)


def seconds_of(learnt: Learnt, step: int) -> float:
    begun = time.process_time()
    learnt.after(step)
    return time.process_time() - begun


def seconds_of_steps(text: str) -> list[float]:
    """Of each step the fastest of some walks through rules learnt anew, which keep nothing yet."""
    walks = []
    for _ in range(WALKS):
        learnt = learn(text, RULES)
        gc.collect()
        walks.append([seconds_of(learnt, step) for step in steps(learnt)])
    return [min(same) for same in zip(*walks, strict=True)]


@pytest.mark.parametrize("name", TEXTS)
def test_learning_and_stepping(name: str) -> None:
    text = TEXTS[name]()
    learnt = learn(text, RULES)
    rules = [(learnt.tokens[left], learnt.tokens[right]) for left, right, _ in learnt.rules]
    parts = in_parts(text)
    assert rules == as_the_library_learns([text]) == as_the_library_learns(parts)
    assert len(rules) == RULES
    found = ratio(lambda: learn(text, RULES), lambda: as_the_library_learns(parts))
    spent = seconds_of_steps(text)
    slowest = max(spent)
    report(
        f"learning {RULES:,} byte-level rules on {len(text) / 1e6:.1f} MB ({name})",
        f"{milliseconds(found.first)}, {found}, its words counted; "
        f"{len(spent):,} steps of pair counts: p50 {milliseconds(quantile(spent, 0.5))}, "
        f"slowest {milliseconds(slowest)}",
        f"the library's training on the same parts, {milliseconds(found.second)}",
        f"{BAR} ×, {milliseconds(STEP_BAR)} a step",
    )
    assert found.times <= BAR
    assert slowest <= STEP_BAR
