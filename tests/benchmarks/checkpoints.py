"""A published checkpoint in our core beside the reference library and TransformerLens."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median

import torch

from models import trace
from models.trace import CHEAP_SITES
from tests.benchmarks import published
from tests.benchmarks.ratio import Ratio, ratio
from tests.benchmarks.rows import Row, compared, milliseconds
from tests.source import ROOT

ALL_WEIGHTS_GOAL = 1.05
PAGE_GOALS = {128: 0.85, 512: 0.75}
ONE_HEAD_GOAL = 0.002
EVERYTHING_GOAL = 0.9
LOOKING_GOAL = 1 / 4
OPENING_GOAL, OPENINGS = 0.5, 3
LAST = slice(-1, None)
THEIRS = "of transformers, eager, output_attentions"
ONE_THREAD = "import sys, torch; torch.set_num_threads(1); "
OURS_OPENS = ONE_THREAD + "from models import load_checkpoint; load_checkpoint(sys.argv[1])"
THEIRS_OPENS = ONE_THREAD + (
    "from transformers import GPT2LMHeadModel; GPT2LMHeadModel.from_pretrained(sys.argv[1])"
)


def forward() -> Iterator[Row]:
    """What the peers do to see one head, and what a page asks our core for instead."""
    reference, model = published.reference(), published.ours()
    for tokens, page_goal in PAGE_GOALS.items():
        ids = published.ids(tokens)

        def theirs(ids: torch.Tensor = ids) -> None:
            with torch.no_grad():
                assert len(reference(ids, output_attentions=True).attentions) == published.LAYERS

        def all_weights(ids: torch.Tensor = ids) -> None:
            trace(model, ids, sites=("*.weights", "logits"))

        def a_page(ids: torch.Tensor = ids) -> None:
            trace(model, ids, sites=CHEAP_SITES, read_at=LAST).weights(
                "decoder.5.self_attn", head=3
            )

        what = f"all attention weights and all logits, {published.TITLE}, {tokens} tokens"
        yield compared(what, ratio(all_weights, theirs), THEIRS, ALL_WEIGHTS_GOAL)
        what = f"what a page asks for, {published.TITLE}, {tokens} tokens"
        yield compared(what, ratio(a_page, theirs), THEIRS, page_goal)


def one_head() -> Iterator[Row]:
    """Derived from queries and keys, beside a plain product and softmax of the same sizes."""
    model, ids = published.ours(), published.ids(512)
    cheap = trace(model, ids, sites=CHEAP_SITES, read_at=LAST)
    q, k = torch.randn(2, published.HEADS, 512, 64)
    spent, plain = [], []
    for layer in range(published.LAYERS):
        for head in range(published.HEADS):
            begun = time.process_time()
            cheap.weights(f"decoder.{layer}.self_attn", head=head)
            ended = time.process_time()
            (q[head] @ k[head].mT).softmax(-1)
            plain.append(time.process_time() - ended)
            spent.append(ended - begun)
    yield Row(
        f"one head's weights derived, {published.TITLE}, 512 tokens",
        milliseconds(median(spent)),
        f"{milliseconds(median(plain))} of a plain product and its softmax",
        median(spent) / median(plain),
        f"≤ {milliseconds(ONE_HEAD_GOAL)}",
        median(spent) <= ONE_HEAD_GOAL,
    )


def everything() -> Iterator[Row]:
    """Every site of a pass beside every hook of TransformerLens.

    The longer the text, the more of both sides is the same matrix products.
    """
    from transformer_lens.model_bridge import TransformerBridge

    model = published.ours()
    bridge = TransformerBridge.boot_transformers(
        str(published.folder()), hf_model=published.reference()
    )
    for tokens, rounds in ((32, 11), (128, 3)):
        ids = published.ids(tokens)

        def theirs(ids: torch.Tensor = ids) -> object:
            with torch.no_grad():
                return bridge.run_with_cache(ids)

        def ours(ids: torch.Tensor = ids) -> object:
            return trace(model, ids)

        what = f"everything recorded, {published.TITLE}, {tokens} tokens"
        reference = "of TransformerLens run_with_cache"
        yield compared(what, ratio(ours, theirs, rounds), reference, EVERYTHING_GOAL)
        mine, other = published.peak_bytes(ours), published.peak_bytes(theirs)
        yield Row(
            f"the same: memory at its peak, {tokens} tokens",
            f"{mine / 1e6:.0f} MB",
            f"{other / 1e6:.0f} MB {reference}",
            mine / other,
            f"≤ {EVERYTHING_GOAL} ×",
            mine <= EVERYTHING_GOAL * other,
        )


def memory() -> Iterator[Row]:
    tokens = 2048
    model, ids = published.ours(tokens), published.ids(tokens)
    trace(model, published.ids(16), sites=CHEAP_SITES)

    def look() -> object:
        seen = trace(model, ids, sites=CHEAP_SITES, read_at=LAST)
        return seen, seen.weights("decoder.5.self_attn", head=3)

    peak = published.peak_bytes(look)
    all_weights = published.LAYERS * published.HEADS * tokens**2 * 4
    yield Row(
        f"memory while looking at {tokens:,} tokens, {published.TITLE}",
        f"{peak / 1e6:.0f} MB at its peak",
        f"{all_weights / 1e6:.0f} MB of all attention weights",
        peak / all_weights,
        f"≤ {LOOKING_GOAL} ×",
        peak <= LOOKING_GOAL * all_weights,
    )


def opening() -> Iterator[Row]:
    """From the import of the library to a model that can read, in a fresh Python each time."""
    pairs = [(seconds_of(OURS_OPENS), seconds_of(THEIRS_OPENS)) for _ in range(OPENINGS)][1:]
    ours, theirs = (median(side) for side in zip(*pairs, strict=True))
    yield compared(
        f"opening the folder of {published.TITLE}, imports included",
        Ratio(ours, theirs, median(mine / other for mine, other in pairs)),
        "of transformers from_pretrained",
        OPENING_GOAL,
    )


def seconds_of(program: str) -> float:
    """Processor time of a fresh Python that runs the program on the folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", program, str(published.folder())],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
