"""The state that the app keeps for one reader between runs, besides the widgets: one typed object.

State that only one page or view needs is a class there, of which `state` keeps one object.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import streamlit_patches
from explorer.app.choice import Choice
from explorer.catalog.available_models import ModelEntry

SESSION_KEY = "_session"
MOST_REDRAWS = 5
"""A page that asks to be drawn again so many times in a row is drawn as it is."""
State = TypeVar("State")


@dataclass
class HeadAlone:
    """For a page that redraws only what follows the head: `explorer.views.shared.head_alone`."""

    models: Mapping[str, ModelEntry]
    """The models that this reader could open when the page was drawn."""
    lists: Callable[[], None]
    """Draws the lists of the layer and the head in the bar."""
    end_entry: Callable[[], None] = lambda: None
    """Sends this run's changes of the address as one entry of the browser's history."""
    drawn_for: Choice | None = None
    """The choice without the head; None until what follows the head is drawn."""

    def draw_lists(self) -> None:
        self.lists()
        self.end_entry()


@dataclass
class Session:
    """One reader's state, lost with the connection; what a link must repeat is in the address."""

    owner: str = ""
    """The owner of what this reader makes: see `explorer.app.reader`."""
    is_admin: bool = False
    """Whether this reader has typed the server's token: see `explorer.app.admin_token`."""

    # The pages
    pages: dict[str, st.Page] = field(default_factory=dict)
    """Every page by the name of its file; empty where a page is run alone."""
    navigation: list[st.Page] = field(default_factory=list)
    """The same pages, and the first one's name, which redirects to the root."""
    controls: dict[str, set[str]] = field(default_factory=dict)
    """The parameters whose controls each page has drawn."""

    # The page on screen
    page: str = ""
    """The name of the page that is drawn; empty where it is run alone."""
    has_arrived: bool = False
    """Whether the reader came to this page with this run."""
    redraws: int = 0
    """How often the page has asked to be drawn again since it was last drawn to its end."""
    uses: tuple[str, ...] = ()
    """The choices of the frame that the page uses."""
    bar: tuple[str, ...] = ()
    """Those of them that are not hidden."""
    hidden: frozenset[str] = frozenset()
    """The controls that the address hides: see `explorer.app.links`."""
    draws_head_alone: bool = False
    """Whether the page can redraw only what follows the head."""
    head_alone: HeadAlone | None = None
    """Set if the page can redraw only what follows the head."""
    sidebar_head: DeltaGenerator | None = None
    """The container at the top of the sidebar, for the miniature."""
    sidebar_foot: DeltaGenerator | None = None
    """The container at its bottom, for the row of tools."""
    shown_model: str | None = None
    """The model that the last run showed; None in a new session."""
    has_long_text: bool = False
    """Whether the sentence is too long for the address: see `explorer.app.typed_text`."""
    upload_megabytes: int = 200
    """The largest upload; it stays the same, since another value empties the form."""

    # What was chosen
    choose_next: dict[str, Any] = field(default_factory=dict)
    """Values for widgets that are already drawn in this run; they take them in the next."""
    open_next: Path | None = None
    """The folder of the model to open in the next run."""
    next_page: str = ""
    """The page that a click leads to, in this run."""
    next_address: dict[str, str] = field(default_factory=dict)
    """What is chosen on that page."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """The default that each control showed last, so that it can follow a change."""
    persistent: dict[str, dict[str, str | list[str]]] = field(default_factory=dict)
    """Choices whose controls may not be drawn, by page and then by name in the address."""

    states: dict[type, object] = field(default_factory=dict)
    """The state of single pages and views by class."""

    def state(self, kind: type[State]) -> State:
        """The reader's object of this class, made by `kind()` at first.

        >>> Session().state(dict)
        {}
        """
        return cast(State, self.states.setdefault(kind, kind()))


def session() -> Session:
    """The session of the reader whose run this is, looked up once by its thread."""
    here = streamlit_patches.kept_in_run()
    reader: Session | None = here.get(SESSION_KEY)
    if reader is None:
        reader = here[SESSION_KEY] = st.session_state.setdefault(SESSION_KEY, Session())
    return reader


def state_of(kind: type[State]) -> State:
    """The object of this class that is kept for the reader whose run this is."""
    return session().state(kind)


def redraw() -> None:
    """End this run and draw the page again; after MOST_REDRAWS in a row it returns."""
    reader = session()
    reader.redraws += bool(reader.page)  # a page that is run alone has no frame, which counts
    if reader.redraws <= MOST_REDRAWS:
        st.rerun()
