"""Analyses of a pass of GPT-2's small size, beside the pass they look into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import torch

from explorer.analysis.ablation import every_head
from explorer.analysis.contributions import contributions
from explorer.analysis.onward import onward
from explorer.analysis.pairs import by_distance, pair, strongest
from explorer.answers import Answer
from explorer.bench import onward as onwards
from explorer.bench import pairs
from explorer.reading import Reading
from explorer.text import Token
from models import Transformer, trace
from models.interventions import Scale
from models.trace import CHEAP_SITES
from tests.benchmarks import published
from tests.benchmarks.ratio import Ratio, ratio
from tests.benchmarks.rows import Row, compared

ABLATED, TOKENS = 32, 128
ABLATING_GOAL, LEDGER_GOAL, CONTRIBUTIONS_GOAL = 1 / 4, 0.1, 0.5
PART = "decoder.self_attn"
LAST = slice(-1, None)


def every_head_ablated() -> Iterator[Row]:
    """The pass to beat is cheap already: fused attention, logits at the last token only.

    Half the arithmetic, in batches that pass at least twice as quickly per row as one row
    alone: a processor that has its full speed with one row already cannot meet this goal.
    """
    model, ids = published.ours(), published.ids(ABLATED)

    def one_layer() -> None:
        for head in range(published.HEADS):
            off = Scale("decoder.5.self_attn.head_out", head=head)
            trace(model, ids, sites=("logits",), read_at=LAST, edits=[off])

    def at_once() -> None:
        passed = trace(model, ids, sites=CHEAP_SITES, read_at=LAST)
        list(every_head(model, passed, (ids,), PART, published.LAYERS, ABLATED - 1))

    found = ratio(at_once, one_layer)
    heads = published.LAYERS * published.HEADS
    yield compared(
        f"{heads} heads ablated at once, {published.TITLE}, {ABLATED} tokens",
        Ratio(found.first, found.second * published.LAYERS, found.times / published.LAYERS),
        "of one pass with one edit for each",
        ABLATING_GOAL,
    )


def a_reading() -> tuple[Transformer, torch.Tensor, Reading]:
    """A pass as the app keeps it."""
    model, ids = published.ours(), published.ids(TOKENS)
    seen = trace(model, ids, sites=CHEAP_SITES, read_at=LAST)
    tokens = tuple(Token(i, str(i), 0, 1) for i in ids[0].tolist())
    return model, ids, Reading("", model.config, (), tokens, (), seen, Answer("next", ""))


def cell_ledger() -> Iterator[Row]:
    """Another head, query and key each time; the pass is kept, as it is in the app."""
    model, ids, reading = a_reading()
    clicks = count()

    def a_ledger() -> None:
        click = next(clicks)
        here = PART, click % published.LAYERS, 5 * click % published.HEADS
        query = TOKENS - 1 - 7 * click % 60
        key = strongest(reading, *here, query)
        way = onward(reading, *here, query, key)
        assert pairs.ledger(pair(reading, *here, query, key))
        assert onwards.steps(way, way.largest)
        by_distance(reading, *here, query, key)

    what = f"opening a cell's ledger, {published.TITLE}, {TOKENS} tokens, the pass kept"
    yield compared(what, ratio(a_ledger, a_pass_of(model, ids)), "of one pass", LEDGER_GOAL)


def direct_contributions() -> Iterator[Row]:
    """All heads and blocks to one logit, beside one plain pass without anything recorded."""
    model, ids, reading = a_reading()
    yield compared(
        f"what all heads and blocks contribute to one logit, {published.TITLE}, {TOKENS} tokens",
        ratio(lambda: contributions(reading, TOKENS - 1, 7), a_pass_of(model, ids)),
        "of one pass",
        CONTRIBUTIONS_GOAL,
    )


def a_pass_of(model: Transformer, ids: torch.Tensor) -> Callable[[], None]:
    def a_pass() -> None:
        with torch.no_grad():
            model(ids)

    return a_pass
