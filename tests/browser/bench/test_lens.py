"""The logit lens, by hand: on models of ours and on a published one."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.bench.test_heads import cell, point
from tests.browser.visiting import Visitor


@pytest.mark.parametrize(
    ("address", "answer"),
    [
        ("/lens?model=induction&text=abcabcab", "The answer: c"),
        ("/lens?model=negation&text=the+food+was+not+good", "The answer: negative"),
        ("/lens?model=bert&text=the+capital+of+%5BMASK%5D", "The answer: "),
    ],
    ids=["ours", "a classifier", "published"],
)
def test_logit_lens(visitor: Visitor, address: str, answer: str) -> None:
    page = visitor.open(address)
    expect(page.get_by_text(answer)).to_be_visible()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    visitor.no_traceback()
    assert visitor.notes.errors == []


@pytest.mark.parametrize("model", ["translation", "negation", "bert"])
def test_direct_contributions_to_a_logit(visitor: Visitor, model: str) -> None:
    """Point at a head, read the sum, and choose another option."""
    page = visitor.open(f"/lens?model={model}")
    expect(page.get_by_text("the sum of all parts differs from it by")).to_be_visible()
    visitor.drawn("made_of")
    assert point(visitor, "made_of", 0, 1).startswith("Layer 0, head 1: ")
    canvas, at = cell(visitor, "made_of", 0, 0)
    canvas.click(position=at)
    heads = page.get_by_test_id("stSidebar").get_by_role("radiogroup", name="Head")
    expect(heads.get_by_role("radio", name="0", exact=True)).to_be_checked()
    visitor.no_traceback()
    assert visitor.notes.errors == []
