"""What a view has reported, as a plain dictionary.

Streamlit makes a class, so that a page may write to a component's state, each time it looks
at one, five times a run for every component there is. The views of one page cost forty
classes and a thousand objects of garbage for each change of a head, in which the collector
then searched for half a second, with every reader waiting. Nothing here writes to a view.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlit.components.v2.bidi_component import main as streamlit_components


def presenter(
    aggregator_id: str,
    component_id: str | None = None,
    allowed_state_keys: set[str] | None = None,
) -> Callable[[Any, Any], Any]:
    """Stands for Streamlit's of the same arguments; the aggregator has what the view fired."""

    def present(state: Any, session: Any) -> Any:
        fired = session._new_widget_state.get(aggregator_id)
        if not fired or not isinstance(state, dict):
            return state
        return {each["event"]: each.get("value") for each in fired if is_event(each)} | state

    return present


def is_event(fired: object) -> bool:
    """The browser's words are checked: an event has a name."""
    return isinstance(fired, dict) and isinstance(fired.get("event"), str)


def install() -> None:
    """From now on views are looked at like this."""
    streamlit_components.make_bidi_component_presenter = presenter
