"""The logit lens, by hand: on models of ours and on a published one."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

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
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    visitor.no_traceback()
    assert visitor.notes.errors == []
