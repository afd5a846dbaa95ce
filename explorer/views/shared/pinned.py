"""What is held in the large head, and which heads are drawn as lines; a link repeats both.

A held cell is a query and a key, a held token one of them. Both are places in the text, whatever
the picture makes of it, so what is held in one view is held in the next.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.analysis.word_groups import Group
from explorer.app.context import page_context
from explorer.app.controls import bring
from explorer.app.folded_choices import Folded
from explorer.app.messages import say
from explorer.app.session import session
from explorer.components.events import Place
from explorer.inference.forward_pass import ForwardPass
from explorer.text.labels import cut
from explorer.text.token_labels import text_of

HELD = Folded("held", {"held": "", "drawn": ""})
WRITTEN = re.compile(r"(?:q(\d{1,5}))?(?:k(\d{1,5}))?")
EVERY, MOST = "all", 100_000


@dataclass(frozen=True)
class Held:
    """A query, a key, both or neither, by their places."""

    query: int | None = None
    key: int | None = None

    def __str__(self) -> str:
        """As it stands in the address: q5k2, q5 or k2."""
        query = "" if self.query is None else f"q{self.query}"
        return query if self.key is None else f"{query}k{self.key}"


def now(forward: ForwardPass) -> Held:
    """What is held of this text; what the text does not reach is let go, of an address aloud."""
    part, reader = page_context().choice.part, session()
    is_new = HELD.name not in session().persistent
    asked = HELD.texts()
    wish, heads = str(asked.get("held", "")), str(asked.get("drawn", ""))
    found = _read(wish, len(forward.rows(part)), len(forward.columns(part)))
    known = _heads(heads, forward.part(part).heads)
    head = page_context().choice.head if reader.lines_beside is None else reader.lines_beside
    if head != page_context().choice.head:  # another head was chosen: that one is drawn
        heads, known = "", ()
    reader.lines_beside = page_context().choice.head
    if is_new:
        _carry(found)
        count = forward.part(part).heads
        notes = [*_held_note(wish, str(found)), *_drawn_note(heads, known, count)]
        reader.pinned_notes = page_context().choice, tuple(notes)
    HELD.settle({"held": str(found), "drawn": heads if known else ""})
    said_of, sentences = reader.pinned_notes or (None, ())
    for note in sentences if said_of == page_context().choice else ():
        say(note)
    return found


def seen(forward: ForwardPass) -> Held:
    """The same for other pages, which say nothing about the address."""
    part = page_context().choice.part
    wish = str(HELD.texts().get("held", ""))
    return _read(wish, len(forward.rows(part)), len(forward.columns(part)))


def asked() -> Held:
    """What another page has held, whatever the text."""
    kept = session().persistent.get(HELD.name, {})
    return _read(str(kept.get("held", "")), MOST, MOST)


def within(found: Held, forward: ForwardPass, part: str) -> Held:
    """As far as this text reaches in this attention."""
    return _read(str(found), len(forward.rows(part)), len(forward.columns(part)))


def drawn(forward: ForwardPass) -> tuple[int, ...]:
    """The heads that are drawn as lines: the chosen one, unless others were picked there."""
    at = page_context().choice
    heads = str(HELD.texts().get("drawn", ""))
    return _heads(heads, forward.part(at.part).heads) or (at.head,)


def hold(found: Held) -> None:
    """For a callback: this is held from now on."""
    session().pinned_notes = None
    HELD.put("held", str(found))
    _carry(found)


def draw(heads: Sequence[int], forward: ForwardPass) -> None:
    """For a callback: these heads are drawn as lines."""
    at = page_context().choice
    session().pinned_notes = None
    session().lines_beside = at.head
    is_usual = tuple(heads) == (at.head,)
    every = len(heads) == forward.part(at.part).heads
    HELD.put("drawn", "" if is_usual else EVERY if every else ".".join(map(str, heads)))


def both_names(forward: ForwardPass, part: str, query: int) -> list[str]:
    """A step of an answer reads one token and writes another: pages call it by either."""
    if not forward.written or not part.startswith("decoder"):
        return []
    read, written = text_of(forward.target[query]), text_of(forward.written[query])
    return [f"Row {query} reads “{read}” and writes “{written}”."]


def in_picture(place: int | None, groups: Sequence[Group]) -> int | None:
    """The row or column of a picture in which this token is."""
    return next((at for at, group in enumerate(groups) if place in group), None)


def cell(found: Held, rows: Sequence[Group], columns: Sequence[Group]) -> Place | None:
    """The cell of a picture that is held; the groups say which tokens are behind each line."""
    row, column = in_picture(found.query, rows), in_picture(found.key, columns)
    return None if row is None or column is None else (row, column)


def token(
    found: Held, rows: Sequence[Group], columns: Sequence[Group], *, one_strip: bool = False
) -> Place | None:
    """The token that is held, the query before the key; its side is 0 where there is one strip."""
    row, column = in_picture(found.query, rows), in_picture(found.key, columns)
    if row is not None:
        return 0, row
    return None if column is None else (0 if one_strip else 1, column)


def hold_cell(place: Place | None, rows: Sequence[Group], columns: Sequence[Group]) -> None:
    """For the callback of a matrix."""
    hold(Held() if place is None else Held(rows[place[0]][0], columns[place[1]][0]))


def hold_token(
    found: Held, place: Place | None, rows: Sequence[Group], columns: Sequence[Group]
) -> None:
    """For the callback of a view of tokens; a held cell stays while its query is held."""
    if place is None:
        hold(Held())
    elif place != token(found, rows, columns):
        side, at = place
        hold(Held(key=columns[at][0]) if side else Held(query=rows[at][0]))


def way_on(found: Held) -> None:
    """To where a weight comes from, and to where it is changed; a page run alone has no others."""
    pages = session().pages
    is_cell = found.query is not None and found.key is not None
    what = "the held cell" if is_cell else "the held token" if str(found) else "a pair"
    ways = {
        "head_steps": "This head, step by step",
        "query_key": f"Query and key of {what}",
        "interventions": "Change the held cell or this head" if is_cell else "Change this head",
    }
    with st.container(horizontal=True):
        for name, label in ways.items():
            if name in pages:
                st.page_link(pages[name], label=label, icon=":material/arrow_forward:")


def _carry(found: Held) -> None:
    """The Query and key page shows what is held here."""
    for name, place in (("query", found.query), ("key", found.key)):
        if place is not None:
            bring(name, place)


def _read(wish: str, rows: int, columns: int) -> Held:
    found = WRITTEN.fullmatch(wish)
    query, key = (found[1], found[2]) if found else (None, None)
    return Held(
        int(query) if query and int(query) < rows else None,
        int(key) if key and int(key) < columns else None,
    )


def _heads(wish: str, count: int) -> tuple[int, ...]:
    """The heads that a text names, or none where it names one that there is not."""
    if wish == EVERY:
        return tuple(range(count))
    if not re.fullmatch(r"\d{1,4}(\.\d{1,4})*", wish):
        return ()
    heads = sorted({int(each) for each in wish.split(".")})
    return tuple(heads) if heads[-1] < count else ()


def _held_note(wish: str, found: str) -> list[str]:
    if wish == found:
        return []
    instead = f"held is {found}" if found else "nothing is held"
    may = "“held” can be a query and a key of this text, such as q0k0"
    return [f"{may}, not “{cut(wish, 20)}”; {instead}."]


def _drawn_note(wish: str, known: Sequence[int], count: int) -> list[str]:
    if known or not wish:
        return []
    may = f"heads 0 to {count - 1} with dots between them" if count > 1 else "head 0"
    return [f"“drawn” can be {may}, not “{cut(wish, 20)}”; the chosen head is drawn."]
