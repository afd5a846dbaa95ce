"""The sentence and the interventions before a lesson come back when it is left."""

from dataclasses import dataclass

import streamlit as st

from explorer.app import address, streamlit_patches
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.session import session, state_of

EDITS = PersistentChoices("edits", {"edits": ""})


@dataclass
class AroundLesson:
    """The interventions, or another choice, before and in the open lesson."""

    before: str | None = None
    """The last one outside of lessons; None if there was none."""
    last: str | None = None
    """The last one in the open lesson; None outside of lessons."""

    def settle(self, now: str, is_own: bool) -> str:
        """This choice; that before the lesson if it was just left and this is not the reader's."""
        last, self.last = self.last, now if address.is_named("lesson") else None
        if self.last is not None:
            return now
        if last is None or self.before is None or is_own:
            self.before = now
        return self.before


@dataclass
class SentenceAroundLesson(AroundLesson):
    """The sentence; empty if it is the usual one."""

    of_lesson: frozenset[str] = frozenset()
    """Those that its steps bring or ask for."""


def sentence_comes_back(usual: str) -> bool:
    """Whether a lesson was just left: the next run has the sentence before it.

    If the reader has typed one that is not the lesson's over it, that one stays. To be called
    after `settle_text`; `usual` is the sentence of a bar in which nobody has typed.
    """
    around, came_back = state_of(SentenceAroundLesson), streamlit_patches.came_back()
    text, last = str(st.session_state.get("text", "")), around.last
    if not session().has_long_text and (came_back or "text" not in st.session_state):
        text = address.value_of("text") or usual  # the bar takes it when it is drawn
    is_over, now = last is not None and not address.is_named("lesson"), text * (text != usual)
    is_elsewhere = came_back and address.is_named("text") and now != last
    if last not in {None, "", *around.of_lesson} and is_over and not is_elsewhere:
        now, is_elsewhere = str(last), True
    text = around.settle(now, is_elsewhere) or usual
    if is_over:
        session().choose_next["text"] = text
    return is_over


def settle_edits() -> None:
    """They go on from page to page; in a lesson, a page begins with those of its address alone."""
    around, reader = state_of(AroundLesson), session()
    if reader.has_arrived and (address.is_named("lesson") or address.is_named("edits")):
        reader.persistent.pop(EDITS.name, None)
    text = str(EDITS.texts().get("edits", ""))
    EDITS.settle({"edits": around.settle(text, is_own=text != around.last)})
