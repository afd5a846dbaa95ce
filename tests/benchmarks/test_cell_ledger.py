"""A cell's ledger, from q·k to the stream, beside the pass that gave it."""

from __future__ import annotations

from itertools import count

import torch

from explorer.analysis.onward import onward
from explorer.analysis.pairs import by_distance, pair, strongest
from explorer.answers import Answer
from explorer.bench import onward as onwards
from explorer.bench import pairs
from explorer.reading import Reading
from explorer.text import Token
from models import trace
from models.trace import CHEAP_SITES
from tests.benchmarks import published
from tests.benchmarks.figure import report
from tests.benchmarks.ratio import ratio

TOKENS, BAR = 128, 0.1
BLOCK_APART = 3e-6
"""Of the stream behind the feed-forward as well, which no row's bar is for."""
PART = "decoder.self_attn"


def test_opening_a_cell() -> None:
    """Another head, query and key each time; the pass is kept, as it is in the app."""
    model, ids = published.ours(), published.ids(TOKENS)
    seen = trace(model, ids, sites=CHEAP_SITES, read_at=slice(-1, None))
    tokens = tuple(Token(i, str(i), 0, 1) for i in ids[0].tolist())
    reading = Reading("", model.config, (), tokens, (), seen, Answer("next", ""))
    streams = trace(model, ids, sites=("*resid_mid",))
    clicks, apart = count(), [0.0]

    def a_ledger() -> None:
        click = next(clicks)
        here = PART, click % published.LAYERS, 5 * click % published.HEADS
        query = TOKENS - 1 - 7 * click % 60
        key = strongest(reading, *here, query)
        found, way = pair(reading, *here, query, key), onward(reading, *here, query, key)
        assert pairs.ledger(found)
        assert onwards.steps(way, way.largest)
        by_distance(reading, *here, query, key)
        assert found.difference < 1e-6
        row = streams[f"decoder.{here[1]}.resid_mid"][0, query]
        assert (way.after - row).abs().max() <= 1e-6 * row.abs().max()
        apart.append(way.difference)

    def a_pass() -> None:
        with torch.no_grad():
            model(ids)

    measured = ratio(a_ledger, a_pass)
    report(
        f"opening a cell's ledger, {published.TITLE}, {TOKENS} tokens, the pass kept",
        f"{1000 * measured.first:.1f} ms, {measured}; the attended row made again within 1e-6, the "
        f"stream behind the whole block, of sums of 3,072 products, within {max(apart):.1e}",
        f"{1000 * measured.second:.0f} ms of one pass",
        f"{BAR} ×",
    )
    assert measured.times <= BAR
    assert max(apart) < BLOCK_APART
