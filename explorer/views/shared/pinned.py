"""The pinned query and key of the chosen head, and the heads drawn as lines; a link repeats both.

A pinned cell is a query and a key, a pinned token one of them. Both are positions in the text,
whatever the view makes of it, so what is pinned in one view is pinned in the next.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.analysis.word_groups import Group
from explorer.app.choosing import draw_page_link
from explorer.app.context import PageContext
from explorer.app.controls import choose_token
from explorer.app.messages import draw_notes, drop_notes, keep_note
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.session import session, state_of
from explorer.components.events import Place
from explorer.inference.forward_pass import ForwardPass
from explorer.text.token_labels import label_at
from explorer.text.visible_text import cut

WRITTEN = re.compile(r"(?:q(\d{1,5}))?(?:k(\d{1,5}))?")
EVERY, MOST = "all", 100_000


@dataclass
class HeadOfLines:
    """The chosen head when other heads were picked to be drawn as lines."""

    head: int | None = None


IN_ADDRESS = PersistentChoices("held", {"held": "", "drawn": ""}, goes_with=HeadOfLines)


@dataclass(frozen=True)
class PinnedCell:
    """A query, a key, both or neither, by their positions."""

    query: int | None = None
    key: int | None = None

    def __str__(self) -> str:
        """As it stands in the address: q5k2, q5 or k2."""
        query = "" if self.query is None else f"q{self.query}"
        return query if self.key is None else f"{query}k{self.key}"

    @property
    def is_cell(self) -> bool:
        return self.query is not None and self.key is not None

    def within(self, forward: ForwardPass, part: str) -> "PinnedCell":
        """As far as this text reaches in this attention."""
        return parse_pinned(str(self), len(forward.rows(part)), len(forward.columns(part)))


def current_pin(context: PageContext, forward: ForwardPass | None = None) -> PinnedCell:
    """What is pinned in the text of this pass; what an address asks for and is invalid is said.

    Where the text is too short for it, it is unpinned.
    """
    lines, at = state_of(HeadOfLines), context.choice
    forward = forward or context.forward
    is_new = IN_ADDRESS.is_new
    asked = IN_ADDRESS.texts()
    held, heads = str(asked.get("held", "")), str(asked.get("drawn", ""))
    found, count = in_text(context, forward), forward.part(at.part).heads
    known = parse_heads(heads, count)
    if lines.head not in (None, at.head):  # another head was chosen: that one is drawn
        heads, known = "", ()
    lines.head = at.head
    if is_new:
        _carry(found)
        notes = [*_pinned_note(held, str(found)), *_drawn_note(heads, known, count)]
        keep_note("pinned", *notes, until=at)
    IN_ADDRESS.settle({"held": str(found), "drawn": heads if known else ""})
    draw_notes("pinned", at)
    return found


def in_text(context: PageContext, forward: ForwardPass) -> PinnedCell:
    """The same for other pages, which say nothing about the address."""
    part = context.choice.part
    held = str(IN_ADDRESS.texts().get("held", ""))
    return parse_pinned(held, len(forward.rows(part)), len(forward.columns(part)))


def pinned_anywhere() -> PinnedCell:
    """What another page has pinned, whatever the text."""
    kept = session().persistent.get(IN_ADDRESS.name, {})
    return parse_pinned(str(kept.get("held", "")), MOST, MOST)


def drawn_heads(context: PageContext) -> tuple[int, ...]:
    """The heads that are drawn as lines: the chosen one, unless others were picked there."""
    at = context.choice
    heads = str(IN_ADDRESS.texts().get("drawn", ""))
    return parse_heads(heads, context.part.heads) or (at.head,)


def pin(found: PinnedCell) -> None:
    """For a callback: this is pinned from now on."""
    drop_notes("pinned")
    IN_ADDRESS.put("held", str(found))
    _carry(found)


def draw_heads(heads: Sequence[int], context: PageContext) -> None:
    """For a callback: these heads are drawn as lines."""
    state_of(HeadOfLines).head = head = context.choice.head
    drop_notes("pinned")
    if tuple(heads) == (head,):
        text = ""
    elif len(heads) == context.part.heads:
        text = EVERY
    else:
        text = ".".join(map(str, heads))
    IN_ADDRESS.put("drawn", text)


def read_and_written(forward: ForwardPass, part: str, query: int) -> list[str]:
    """A step of an answer reads one token and writes another: pages call it by either."""
    if not forward.written or not part.startswith("decoder"):
        return []
    read, written = label_at(forward.target, query), label_at(forward.written, query)
    return [f"Row {query} reads “{read}” and predicts “{written}”."]


def group_with(place: int | None, groups: Sequence[Group]) -> int | None:
    """The row or column of a view in which this token is."""
    return next((at for at, group in enumerate(groups) if place in group), None)


def pinned_cell(found: PinnedCell, rows: Sequence[Group], columns: Sequence[Group]) -> Place | None:
    """The pinned cell of a view; the groups are the tokens behind each row and column."""
    row, column = group_with(found.query, rows), group_with(found.key, columns)
    return None if row is None or column is None else (row, column)


def pinned_token(
    found: PinnedCell, rows: Sequence[Group], columns: Sequence[Group], *, one_strip: bool = False
) -> Place | None:
    """The pinned token, the query before the key; its side is 0 where there is one strip."""
    row, column = group_with(found.query, rows), group_with(found.key, columns)
    if row is not None:
        return 0, row
    return None if column is None else (0 if one_strip else 1, column)


def pin_cell(place: Place | None, rows: Sequence[Group], columns: Sequence[Group]) -> None:
    """For the callback of a matrix."""
    pin(PinnedCell() if place is None else PinnedCell(rows[place[0]][0], columns[place[1]][0]))


def pin_token(
    found: PinnedCell, place: Place | None, rows: Sequence[Group], columns: Sequence[Group]
) -> None:
    """For the callback of a view of tokens; a pinned cell stays while its query is pinned."""
    if place is None:
        pin(PinnedCell())
    elif place != pinned_token(found, rows, columns):
        side, at = place
        pin(PinnedCell(key=columns[at][0]) if side else PinnedCell(query=rows[at][0]))


def links_from(found: PinnedCell) -> None:
    """Links to where a weight comes from, and to where it is changed."""
    what = "the pinned cell" if found.is_cell else "the pinned token" if str(found) else "a pair"
    labels = {
        "head_steps": "This head, step by step",
        "query_key": f"Query and key of {what}",
        "interventions": f"Interventions on {'the pinned cell' if found.is_cell else 'this head'}",
    }
    with st.container(horizontal=True):
        for name, label in labels.items():
            draw_page_link(name, label)


def parse_pinned(text: str, rows: int, columns: int) -> PinnedCell:
    """What a text such as q5k2 names, of so many rows and columns."""
    found = WRITTEN.fullmatch(text)
    query, key = (found[1], found[2]) if found else (None, None)
    return PinnedCell(
        int(query) if query and int(query) < rows else None,
        int(key) if key and int(key) < columns else None,
    )


def parse_heads(text: str, count: int) -> tuple[int, ...]:
    """The heads that a text such as 0.2 names, or none where it names one that does not exist."""
    if text == EVERY:
        return tuple(range(count))
    if not re.fullmatch(r"\d{1,4}(\.\d{1,4})*", text):
        return ()
    heads = sorted({int(each) for each in text.split(".")})
    return tuple(heads) if heads[-1] < count else ()


def _carry(found: PinnedCell) -> None:
    """The Query and key page shows what is pinned here."""
    for name, place in (("query", found.query), ("key", found.key)):
        if place is not None:
            choose_token(name, place)


def _pinned_note(asked: str, found: str) -> list[str]:
    if asked == found:
        return []
    instead = f"{found} is pinned" if found else "nothing is pinned"
    can = "“held” can be a query and a key of this text, such as q0k0"
    return [f"{can}, not “{cut(asked, 20)}”; {instead}."]


def _drawn_note(asked: str, known: Sequence[int], count: int) -> list[str]:
    if known or not asked:
        return []
    can = f"heads 0 to {count - 1} with dots between them" if count > 1 else "head 0"
    return [f"“drawn” can be {can}, not “{cut(asked, 20)}”; the chosen head is drawn."]
