"""What a view has reported reads as Streamlit would read it, without its price."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any, ClassVar

import streamlit.components.v2.presentation as streamlit_presentation
from streamlit.components.v2.bidi_component import main as streamlit_components

from explorer.components import matrix, presenting  # noqa: F401  (a view installs it)
from tests.grids import grid


class States(dict[str, Any]):
    """As much of Streamlit's store of widgets as a presenter asks for."""

    widget_metadata: ClassVar = {"events": SimpleNamespace(value_type="json_trigger_value")}


FIRED: list[Any] = [
    None,
    [],
    [{"event": "picked", "value": [0, 1]}],
    [{"event": "picked", "value": 1}, {"event": "hidden", "value": None}],
    [{"event": "picked", "value": 1}, {"event": "picked", "value": 2}],
    [{"event": "kept", "value": "the state is stronger"}],
    ["no event", {"value": 3}, {"event": 4, "value": 5}, 6, None],
]


@grid("fired, state", FIRED, [{}, {"kept": 7}, None, "no mapping"])
def test_a_view_reads_as_streamlit_reads_it(state: object, fired: list[Any] | None) -> None:
    session: Any = SimpleNamespace(_new_widget_state=States(events=fired))
    ours = presenting.presenter("events", "view")(state, session)
    theirs = streamlit_presentation.make_bidi_component_presenter("events", "view")(state, session)
    assert ours == theirs


def test_a_view_that_has_fired_nothing_yet_is_its_state() -> None:
    session: Any = SimpleNamespace(_new_widget_state=States())
    assert presenting.presenter("events")({"kept": 7}, session) == {"kept": 7}


def test_looking_leaves_nothing_for_the_collector() -> None:
    """Streamlit's leaves dozens of objects a look, which is why it is replaced."""
    session: Any = SimpleNamespace(_new_widget_state=States(events=FIRED[2]))
    streamlit = streamlit_presentation.make_bidi_component_presenter("events", "view")
    assert garbage_of(presenting.presenter("events", "view"), session) == 0
    assert garbage_of(streamlit, session) > 200, "Streamlit is cheap now: presenting.py may go"


def garbage_of(present: Any, session: Any) -> int:
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            present({}, session)
        return gc.collect()
    finally:
        gc.enable()


def test_it_stands_where_streamlit_looks_for_it() -> None:
    assert streamlit_components.make_bidi_component_presenter is presenting.presenter
