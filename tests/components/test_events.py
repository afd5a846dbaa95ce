"""What a browser tells of a view is taken only where it can be true."""

import pytest
import streamlit as st

from explorer.components import events


def test_one_of_so_many() -> None:
    taken = {2: 2, 0: 0}
    for sent in (2, 0, 3, -1, "1", True, 1.0, None):
        assert events.place(sent, 3) == (taken.get(sent) if type(sent) is int else None), sent


def test_nonsense_is_no_cell() -> None:
    for sent in (None, "no", [], [1], [1, 2, 3], [-1, 0], [0, 9], [0.5, 1], [True, 1], {"a": 1}):
        assert events.cell(sent, 2, 4) is None, sent
        assert events.on_a_side(sent, 2, 4) is None, sent


def test_a_cell_and_a_token_on_a_side() -> None:
    assert events.cell([1, 3], 2, 4) == (1, 3)
    assert events.on_a_side([0, 1], 2, 4) == (0, 1)
    assert events.on_a_side([0, 2], 2, 4) is None, "there are two rows"
    assert events.on_a_side([1, 3], 2, 4) == (1, 3)
    assert events.on_a_side([2, 0], 9, 9) is None, "there are two sides"


def test_an_event_of_a_view_that_is_gone_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "session_state", {"here": {"picked": [1, 2]}})
    assert events.event("here", "picked") == [1, 2]
    assert events.event("here", "chosen") is None
    assert events.event("gone", "picked") is None
