"""What one logit is made of, beside the pass that gave it."""

from __future__ import annotations

import torch

from explorer.analysis.contributions import contributions
from explorer.answers import Answer
from explorer.reading import Reading
from explorer.text import Token
from models import trace
from models.trace import CHEAP_SITES
from tests.benchmarks import published
from tests.benchmarks.figure import milliseconds, report
from tests.benchmarks.ratio import ratio

TOKENS, BAR = 128, 0.5


def test_direct_contributions() -> None:
    """All heads and blocks to one logit, beside one plain pass without anything recorded."""
    model, ids = published.ours(), published.ids(TOKENS)
    seen = trace(model, ids, sites=CHEAP_SITES, read_at=slice(-1, None))
    tokens = tuple(Token(i, str(i), 0, 1) for i in ids[0].tolist())
    reading = Reading("", model.config, (), tokens, (), seen, Answer("next", ""))

    def all_parts() -> None:
        found = contributions(reading, TOKENS - 1, 7)
        assert found.difference < 1e-4 * abs(found.logit)

    def a_pass() -> None:
        with torch.no_grad():
            model(ids)

    measured = ratio(all_parts, a_pass)
    report(
        f"direct contributions of all heads and blocks to one logit, {published.TITLE}, "
        f"{TOKENS} tokens",
        f"{milliseconds(measured.first)}, {measured}",
        f"{milliseconds(measured.second)} of one pass",
        f"{BAR} ×",
    )
    assert measured.times <= BAR
