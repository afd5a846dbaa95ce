"""What a view has reported reads as Streamlit would read it, without its price."""

from __future__ import annotations

import gc
import itertools
from types import SimpleNamespace
from typing import Any, ClassVar

import streamlit.components.v2.presentation as streamlit_presentation
from streamlit.components.v2.bidi_component import main as streamlit_components

from explorer.components import matrix, presenting  # noqa: F401  (a view installs it)

OURS = presenting.presenter("events", "view")
STREAMLITS = streamlit_presentation.make_bidi_component_presenter("events", "view")
FIRED: list[Any] = [
    None,
    [],
    [{"event": "picked", "value": [0, 1]}],
    [{"event": "picked", "value": 1}, {"event": "hidden", "value": None}],
    [{"event": "picked", "value": 1}, {"event": "picked", "value": 2}],
    [{"event": "kept", "value": "the state is stronger"}],
    ["no event", {"value": 3}, {"event": 4, "value": 5}, 6, None],
]


class States(dict[str, Any]):
    """As much of Streamlit's store of widgets as a presenter asks for."""

    widget_metadata: ClassVar = {"events": SimpleNamespace(value_type="json_trigger_value")}


def session(**fired: Any) -> Any:
    return SimpleNamespace(_new_widget_state=States(**fired))


def garbage_of(present: Any) -> int:
    """How many objects ten looks leave for the collector."""
    looked_at = session(events=FIRED[2])
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            present({}, looked_at)
        return gc.collect()
    finally:
        gc.enable()


def test_a_view_reads_as_streamlit_reads_it() -> None:
    for fired, state in itertools.product(FIRED, [{}, {"kept": 7}, None, "no mapping"]):
        looked_at = session(events=fired)
        assert OURS(state, looked_at) == STREAMLITS(state, looked_at), (fired, state)
    assert OURS({"kept": 7}, session()) == {"kept": 7}, "nothing was fired yet"


def test_looking_leaves_nothing_for_the_collector() -> None:
    """Streamlit's leaves dozens of objects a look, which is why it is replaced."""
    assert garbage_of(OURS) == 0
    assert garbage_of(STREAMLITS) > 200, "Streamlit is cheap now: presenting.py may go"


def test_it_stands_where_streamlit_looks_for_it() -> None:
    assert streamlit_components.make_bidi_component_presenter is presenting.presenter
