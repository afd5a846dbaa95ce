"""What the app keeps for one reader between two runs, besides the widgets: one typed object."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import streamlit as st

if TYPE_CHECKING:
    from explorer.app.context import Choice, PageContext
    from explorer.app.streamlit_patches import Upload
    from explorer.catalog.available_models import ModelEntry

KEY = "_session"
Note = tuple[Any, tuple[str, ...]]
"""Sentences, and what was chosen when they were said: another choice ends them."""


@dataclass
class HeadAlone:
    """For a page that draws only what follows the head: `explorer.views.shared.head_alone`."""

    shelf: Mapping[str, ModelEntry]
    """The models that this reader could open when the page was drawn."""
    first: tuple[str, int, int]
    """The part, layer and head of the chosen model that are shown first."""
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
    admin_fault: str = ""

    # The frame
    context: PageContext | None = None
    head_alone: HeadAlone | None = None
    """Where the page draws again only what follows the head when another is chosen."""
    pages: dict[str, Any] = field(default_factory=dict)
    """Every page by the name of its file; empty where a page is run alone."""
    navigation: list[Any] = field(default_factory=list)
    """The same pages, and the name of the first one, which leads to the root."""
    page: str = ""
    """The name of the page that is drawn; empty where it is run alone."""
    sections: dict[str, str] = field(default_factory=dict)
    """Those of the navigation, by their names, and what is read there."""
    controls: dict[str, set[str]] = field(default_factory=dict)
    """By page, the parameters whose controls it has drawn."""
    uses: tuple[str, ...] = ()
    """What the page uses of that which is chosen once for all pages."""
    bar: tuple[str, ...] = ()
    """What of it the bar shows: all but what is hidden."""
    hidden: frozenset[str] = frozenset()
    """What the address hides, see `explorer.app.links`."""
    draws_head_alone: bool = False
    """What follows the chosen head is drawn again alone: see `explorer.views.shared.head_alone`."""
    shown_model: str | None = None
    """The model of the run before; None in a new session."""
    choose_next: dict[str, Any] = field(default_factory=dict)
    """Values that widgets, which are drawn already in this run, take in the next."""
    open_next: Path | None = None
    """A folder on the shelf that is opened in the next run."""
    downloads: set[str] = field(default_factory=set)
    """Real models whose download this reader asked for; each is opened once it is there."""
    shelf_open: bool = False
    """The shelf of real models was shown unfolded; it does not fold itself."""
    linked_runs: list[str] = field(default_factory=list)
    """What the address has named as a model: a run among them stays on the shelf."""
    brought: list[Path] = field(default_factory=list)
    """Folders that only this reader knows."""
    shortened: str = ""
    """That the typed text was too long, or that of a link is not here; said once."""
    has_long_text: bool = False
    """The sentence is too long for the address: see `explorer.app.typed_text`."""
    frame_notes: Note | None = None
    said: tuple[str, ...] = ()
    """What is said under the bar of this run: the page does not say it again."""
    way_out: tuple[str, Callable[[], None]] | None = None
    """What a button says and does that opens a model which knows the whole sentence."""

    # The address
    defaults: dict[str, Any] = field(default_factory=dict)
    """What each control showed where nobody had chosen, to follow it when it changes."""
    invalid: dict[str, tuple[Any, str]] = field(default_factory=dict)
    """For each control, what is shown instead of an invalid value, and the sentence about it."""
    persistent: dict[str, dict[str, str | list[str]]] = field(default_factory=dict)
    """Choices whose controls may not be drawn, by page, then by their name in the address."""

    # Lessons
    lesson_note: str = ""
    """Why the file that was uploaded last is no lesson, or which one it is."""
    begin_lesson: str = ""
    """Which one begins as soon as the page Lessons is there."""
    lesson_guesses: dict[tuple[str, int], str] = field(default_factory=dict)
    """What was predicted, by lesson and step."""

    # The views
    guesses: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Which pattern was guessed of a run, an attention and a sentence."""
    frame: dict[str, bytes] | None = None
    """Where the views of a frame of a film are collected instead of mounted."""
    sidebar_head: Any = None
    """The container at the head of the sidebar, for the picture of the pass in small."""
    sidebar_foot: Any = None
    """The one at its foot, for the row of tools."""
    door: str = ""
    """The page whose door was opened in the picture of the pass; it is gone to in this run."""
    door_address: dict[str, str] = field(default_factory=dict)
    """What is chosen on that page besides."""
    mark: str = field(default_factory=lambda: token_hex(4))
    """Tells a browser that its session is another one; no secret."""
    picks: dict[str, int] = field(default_factory=dict)
    """By view, the number of the last pick that was heard of."""
    drawn: dict[str, Any] = field(default_factory=dict)
    """By key, what this run has drawn, for the export."""
    has_code: bool = False
    """Whether this run has sent the JavaScript of the components."""
    pinned_notes: Note | None = None
    lines_beside: int | None = None
    """The chosen head when other heads were picked to be drawn as lines."""
    display_notes: Note | None = None
    too_many_hidden: bool = False
    edits_next: str | None = None
    """The edits as text for the next run, since their text field is drawn already."""
    edits_notes: Note | None = None
    long_runs: dict[str, Any] = field(default_factory=dict)
    """By view, what its many passes were started for."""
    stage_notes: dict[str, tuple[Any, str]] = field(default_factory=dict)
    stage_bar: tuple[str, str, int] | None = None
    """Model, part and layer of the bar when a stage was chosen last."""
    stage_outdated: frozenset[tuple[str, str, int]] = frozenset()
    """What the browser may still report of the bar, which a stage has changed since."""
    stage_clicked: bool = False
    """A view of the Forward pass page caused this run, not the bar."""
    bar_follows: bool = False
    """The whole page is drawn again, since the bar has to show another layer."""
    stage_pinned: str = ""
    """The pinned cell on which the stages and the other pages agreed last."""
    goes_on: bool = False
    """Tokens are to be sampled until a limit; a click was made."""
    branches_of: tuple[str, str] | None = None
    branches_by: dict[tuple[str, str], str] = field(default_factory=dict)
    """The branches of each model and text."""
    branches_note: tuple[str, str] | None = None
    branches_said: str = ""
    found_mistakes: dict[str, Any] = field(default_factory=dict)
    museum_results: dict[str, list[Any]] = field(default_factory=dict)
    """The numbers and trainings of the museum that were computed after a click, by name."""
    tokenizer_file: Any = None
    """The uploaded training text of a tokenizer, which no address holds."""
    lines_file: str | None = None
    """The uploaded text whose lines are searched, which no address holds."""
    lines_searched: tuple[str, ...] = ()
    """The lines in which it was searched last what excites a head."""
    system_reads: tuple[str, str, str] = ("", "", "")
    """A document's system that was just made, its text, and why it reads no other."""
    upload_megabytes: int = 200
    """Of one upload at most; it stays as it was at first, since another empties the form."""
    uploads_opened: int = 0
    """How often the form of uploads was emptied, since it is another one then."""
    upload_taken: Sequence[Upload] = ()
    """What is opened in this run."""
    upload_note: tuple[Path, str] | None = None
    """A model that was opened last, and which of the uploaded files were not kept."""
    examined: str | None = None
    """The model in the list whose findings are open."""
    run_requested: Any = None
    run_tokenizer: str | None = None
    run_fault: str = ""
    run_metrics: Any = None
    run_attention: Any = None
    chosen_runs: tuple[str, ...] | None = None
    """The names of the runs that are chosen in the table; None until the address was read."""
    compared_metrics: dict[str, Any] = field(default_factory=dict)
    runs_fault: str = ""
    scheduler_fault: str = ""


def session() -> Session:
    """The session of the reader whose run this is."""
    try:
        found: Session = st.session_state[KEY]
    except KeyError:
        found = st.session_state[KEY] = Session()
    return found
