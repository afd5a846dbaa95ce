"""What the app keeps for one reader between two runs, besides the widgets: one typed object.

What only one room needs (a page, a view) is a class of that room, of which `state` keeps one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.choice import Choice
from explorer.catalog.available_models import ModelEntry

KEY = "_session"
State = TypeVar("State")


@dataclass
class HeadAlone:
    """For a page that draws only what follows the head: `explorer.views.shared.head_alone`."""

    models: Mapping[str, ModelEntry]
    """The models that this reader could open when the page was drawn."""
    lists: Callable[[], None]
    """Draws the layer and the head in the bar."""
    end_entry: Callable[[], None] = lambda: None
    """Sends what this run changed in the address, as one entry in the browser's history."""
    drawn_for: Choice | None = None
    """All that is chosen but the head; None until what follows the head is drawn."""

    def draw_lists(self) -> None:
        self.lists()
        self.end_entry()


@dataclass
class Session:
    """One reader's. It is lost with the connection; what a link must repeat is in the address."""

    owner: str = ""
    """Whose what is made here is: see `explorer.app.reader`."""
    is_admin: bool = False
    """This reader has typed the token of the server: see `explorer.app.admin_token`."""

    # The pages
    pages: dict[str, st.Page] = field(default_factory=dict)
    """Every page by the name of its file; empty where a page is run alone."""
    navigation: list[st.Page] = field(default_factory=list)
    """The same pages, and the name of the first one, which leads to the root."""
    sections: dict[str, str] = field(default_factory=dict)
    """Those of the navigation, by their names, and what is read there."""
    controls: dict[str, set[str]] = field(default_factory=dict)
    """By page, the parameters whose controls it has drawn."""

    # The page on screen
    page: str = ""
    """The name of the page that is drawn; empty where it is run alone."""
    uses: tuple[str, ...] = ()
    """What the page uses of that which is chosen once for all pages."""
    bar: tuple[str, ...] = ()
    """What of it the bar shows: all but what is hidden."""
    hidden: frozenset[str] = frozenset()
    """What the address hides, see `explorer.app.links`."""
    draws_head_alone: bool = False
    """What follows the chosen head is drawn again alone: see `explorer.views.shared.head_alone`."""
    head_alone: HeadAlone | None = None
    """Where the page draws again only what follows the head when another is chosen."""
    sidebar_head: DeltaGenerator | None = None
    """The container at the head of the sidebar, for the picture of the pass in small."""
    sidebar_foot: DeltaGenerator | None = None
    """The one at its foot, for the row of tools."""
    shown_model: str | None = None
    """The model of the run before; None in a new session."""
    has_long_text: bool = False
    """The sentence is too long for the address: see `explorer.app.typed_text`."""
    upload_megabytes: int = 200
    """Of one upload at most; it stays as it was at first, since another empties the form."""

    # What was chosen
    choose_next: dict[str, Any] = field(default_factory=dict)
    """Values that widgets, which are drawn already in this run, take in the next."""
    open_next: Path | None = None
    """The folder of a model that is opened in the next run."""
    next_page: str = ""
    """The page that a click leads to; it is gone to in this run."""
    next_address: dict[str, str] = field(default_factory=dict)
    """What is chosen on that page besides."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """What each control showed where nobody had chosen, to follow it when it changes."""
    persistent: dict[str, dict[str, str | list[str]]] = field(default_factory=dict)
    """Choices whose controls may not be drawn, by page, then by their name in the address."""

    states: dict[type, object] = field(default_factory=dict)
    """What single rooms keep, by its class."""

    def state(self, kind: type[State]) -> State:
        """The one object of this class that is kept for the reader; at first as `kind()` makes it.

        >>> Session().state(dict)
        {}
        """
        return cast(State, self.states.setdefault(kind, kind()))


def session() -> Session:
    """The session of the reader whose run this is."""
    try:
        found: Session = st.session_state[KEY]
    except KeyError:
        found = st.session_state[KEY] = Session()
    return found


def state_of(kind: type[State]) -> State:
    """What the room with this class keeps for the reader whose run this is."""
    return session().state(kind)
