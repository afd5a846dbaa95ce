"""The logit lens, by hand: on models of ours and on a published one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests import zoo
from tests.browser.visiting import Visitor
from tests.served import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app beside a folder of published models."""
    folder = zoo.zoo(tmp_path_factory.mktemp("zoo"))
    env = {"EXPLORER_MODELS": str(folder), "HF_HUB_OFFLINE": "1"}
    with Server(tmp_path_factory.mktemp("served") / "runs", env=env) as server:
        yield server
        server.stop()
        assert not server.tracebacks, server.tracebacks[0]
        assert not server.leftovers()


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
