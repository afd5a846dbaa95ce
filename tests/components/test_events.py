"""What a browser tells of a view is taken only where it can be true."""

from collections.abc import Callable
from typing import Any

import pytest
import streamlit as st
import torch

from explorer.analysis.information_flow import route
from explorer.components import circuit_map, events, miniature, picker
from explorer.components.circuit_map import CircuitChoice
from explorer.components.picker import RankedHead
from tests.components.flows import made_up
from tests.components.invented_circuit import EDGES, invented

ODD: list[Any] = [None, "no", 5, [], {}, {"a": 1}, [1], [1, 2, 3], [-1, 0], [0.5, 1], [True, 1]]


def test_one_of_so_many_a_cell_and_a_token_on_a_side() -> None:
    assert [events.place(sent, 3) for sent in (2, 0)] == [2, 0]
    assert [events.place(sent, 3) for sent in (3, -1, "1", True, 1.0, None)] == [None] * 6
    for sent in [*ODD, [0, 9]]:
        assert events.cell(sent, 2, 4) is None, sent
        assert events.on_a_side(sent, 2, 4) is None, sent
    assert events.cell([1, 3], 2, 4) == events.on_a_side([1, 3], 2, 4) == (1, 3)
    assert events.on_a_side([0, 1], 2, 4) == (0, 1)
    assert events.on_a_side([0, 2], 2, 4) is None, "there are two rows"
    assert events.on_a_side([2, 0], 9, 9) is None, "there are two sides"


def test_an_event_of_a_view_that_is_gone_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "session_state", {"here": {"picked": [1, 2]}})
    assert events.event("here", "picked") == [1, 2]
    assert events.event("here", "chosen") is None
    assert events.event("gone", "picked") is None


def draw_ranked(on_pick: Callable[..., None]) -> None:
    head = RankedHead(1, 3, "1 of 1", "0.5", torch.ones(1, 1))
    picker.ranked([head], key="v", title="", selected=(1, 3), on_pick=on_pick)


def draw_miniature(on_go: Callable[..., None]) -> None:
    flow, parts = made_up(2, 3), [("tokens", "Tokens")]
    how: dict[str, Any] = {"key": "v", "title": "", "lit": [], "layer": ("decoder", 1), "height": 1}
    miniature.miniature(flow, route(flow, flow.starts[-1]), parts=parts, on_go=on_go, **how)


@pytest.mark.parametrize(
    ("drawn_by", "event", "odd", "taken"),
    [
        (draw_ranked, "chosen", [[0, 0], [1.0, 3]], {(1, 3): (1, 3)}),
        (
            draw_miniature,
            "go",
            [["x", 0], ["layer", 2], ["layer", "0"], ["layer", 1e9], [["tokens"], 0], [{}, 0]],
            {("tokens", -1): ("tokens", None), ("layer", 1): ("layer", 1)},
        ),
    ],
)
def test_a_view_tells_nothing_else(
    drawn_by: Callable[[Callable[..., None]], None],
    event: str,
    odd: list[Any],
    taken: dict[Any, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hear, told = dict[str, Any](), list[Any]()
    for view in (picker, miniature):
        monkeypatch.setattr(view, "_VIEW", lambda **how: hear.update(how))
    drawn_by(lambda *value: told.append(value))
    for sent in [*ODD, *odd, *map(list, taken)]:
        number = [sent, 1] if event == "chosen" else sent
        monkeypatch.setitem(st.session_state, "v", {event: number})
        hear[f"on_{event}_change"]()
    assert told == [*taken.values()]


def test_a_choice_in_a_circuit_is_of_its_parts() -> None:
    shown, most = invented(), len(EDGES)
    assert circuit_map.counts(shown) == [5, most]
    for sent, choice in {
        (5, -1, -1, -1): CircuitChoice(5),
        (most, 1, 2, -1): CircuitChoice(most, (1, 2)),
        (most, 1, 3, 2): CircuitChoice(most, None, 2),  # there is no head 1.3
        (most, -1, -1, most): CircuitChoice(most),
    }.items():
        assert circuit_map.selection_in([*sent], shown) == choice
    for odd in [*ODD, [4, 1, 2, 0], [5, 1, 2], [5, 1, 2, 0.0], [True, 1, 2, 0]]:
        assert circuit_map.selection_in(odd, shown) is None
