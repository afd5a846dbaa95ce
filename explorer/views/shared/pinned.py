"""The pinned query and key of the chosen head, and the heads drawn as lines; the address has both.

A pinned cell is a query and a key, a pinned token one of them. Both are positions in the text,
however a view groups its tokens, so what is pinned in one view is pinned in the next.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.analysis.word_groups import Group
from explorer.app.choosing import draw_page_link
from explorer.app.context import PageContext
from explorer.app.controls import choose
from explorer.app.messages import draw_notes, drop_notes, keep_note
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.session import session, state_of
from explorer.components.events import Place
from explorer.inference.forward_pass import ForwardPass
from explorer.text.token_labels import label_at
from explorer.text.visible_text import cut, in_quotes

CELL = re.compile(r"(?:q(\d{1,5}))?(?:k(\d{1,5}))?")
EVERY, MOST = "all", 100_000


@dataclass
class HeadOfLines:
    """The chosen head when other heads were picked to be drawn as lines."""

    head: int | None = None


IN_ADDRESS = PersistentChoices("pinned", {"pinned": "", "drawn": ""}, goes_with=HeadOfLines)


@dataclass(frozen=True)
class PinnedCell:
    """A query, a key, both or neither, by their positions."""

    query: int | None = None
    key: int | None = None

    def __str__(self) -> str:
        """Its form in the address: q5k2, q5 or k2."""
        query = "" if self.query is None else f"q{self.query}"
        return query if self.key is None else f"{query}k{self.key}"

    @property
    def is_cell(self) -> bool:
        return self.query is not None and self.key is not None

    def within(self, forward: ForwardPass, part: str) -> "PinnedCell":
        """Without positions that this attention does not have for this text."""
        return parse_pinned(str(self), len(forward.rows(part)), len(forward.columns(part)))


def current_pin(context: PageContext, forward: ForwardPass | None = None) -> PinnedCell:
    """The pinned cell in the text of this pass; a note names what is invalid in the address.

    A position beyond the end of the text is unpinned.
    """
    lines, at = state_of(HeadOfLines), context.choice
    forward = forward or context.forward
    is_new = IN_ADDRESS.is_new
    texts = IN_ADDRESS.texts()
    text, heads_text = str(texts.get("pinned", "")), str(texts.get("drawn", ""))
    cell, count = in_text(context, forward), forward.part(at.part).heads
    heads = parse_heads(heads_text, count)
    if lines.head not in (None, at.head):  # the reader chose another head: that one is drawn
        heads_text, heads = "", ()
    lines.head = at.head
    if is_new:
        _choose_pinned(cell)
        notes = []
        if text != str(cell):
            instead = f"{cell} is pinned" if str(cell) else "nothing is pinned"
            can = "“pinned” can be a query and a key of this text, such as q0k0"
            notes.append(f"{can}, not “{cut(text, 20)}”; {instead}.")
        if heads_text and not heads:
            can = f"heads 0 to {count - 1} with dots between them" if count > 1 else "head 0"
            drawn = f"“drawn” can be {can}, not “{cut(heads_text, 20)}”"
            notes.append(f"{drawn}; the chosen head is drawn.")
        keep_note("pinned", *notes, until=at)
    IN_ADDRESS.settle({"pinned": str(cell), "drawn": heads_text if heads else ""})
    draw_notes("pinned", at)
    return cell


def in_text(context: PageContext, forward: ForwardPass) -> PinnedCell:
    """The same for pages that draw no notes about the address."""
    part = context.choice.part
    text = str(IN_ADDRESS.texts().get("pinned", ""))
    return parse_pinned(text, len(forward.rows(part)), len(forward.columns(part)))


def pinned_anywhere() -> PinnedCell:
    """What another page has pinned, for a text of any length."""
    texts = session().persistent.get(IN_ADDRESS.name, {})
    return parse_pinned(str(texts.get("pinned", "")), MOST, MOST)


def drawn_heads(context: PageContext) -> tuple[int, ...]:
    """The heads that are drawn as lines: the chosen one, unless the reader picked others."""
    at = context.choice
    return parse_heads(str(IN_ADDRESS.texts().get("drawn", "")), context.part.heads) or (at.head,)


def pin(cell: PinnedCell) -> None:
    """For a callback: pin this cell."""
    drop_notes("pinned")
    IN_ADDRESS.put("pinned", str(cell))
    _choose_pinned(cell)


def draw_heads(heads: Sequence[int], context: PageContext) -> None:
    """For a callback: draw these heads as lines."""
    state_of(HeadOfLines).head = head = context.choice.head
    drop_notes("pinned")
    text = EVERY if len(heads) == context.part.heads else ".".join(map(str, heads))
    IN_ADDRESS.put("drawn", "" if tuple(heads) == (head,) else text)


def row_note(forward: ForwardPass, part: str, query: int) -> list[str]:
    """A note, since a row of a generated answer reads one token and writes another."""
    if not forward.output_tokens or not part.startswith("decoder"):
        return []
    read_token, predicted = label_at(forward.target, query), label_at(forward.output_tokens, query)
    return [f"Row {query} reads {in_quotes(read_token)} and writes {in_quotes(predicted)}."]


def group_with(place: int | None, groups: Sequence[Group]) -> int | None:
    """The row or column of a view that holds this token."""
    return next((at for at, group in enumerate(groups) if place in group), None)


def pinned_cell(cell: PinnedCell, rows: Sequence[Group], columns: Sequence[Group]) -> Place | None:
    """The pinned cell of a view; the groups are the tokens behind each row and column."""
    row, column = group_with(cell.query, rows), group_with(cell.key, columns)
    return None if row is None or column is None else (row, column)


def pinned_token(
    cell: PinnedCell, rows: Sequence[Group], columns: Sequence[Group], *, one_strip: bool = False
) -> Place | None:
    """The pinned token as side and place, the query before the key; one strip has side 0 only."""
    row, column = group_with(cell.query, rows), group_with(cell.key, columns)
    if row is not None:
        return 0, row
    return None if column is None else (0 if one_strip else 1, column)


def pin_cell(place: Place | None, rows: Sequence[Group], columns: Sequence[Group]) -> None:
    """For the callback of a matrix."""
    pin(PinnedCell() if place is None else PinnedCell(rows[place[0]][0], columns[place[1]][0]))


def pin_token(
    cell: PinnedCell, place: Place | None, rows: Sequence[Group], columns: Sequence[Group]
) -> None:
    """For the callback of a view of tokens; a pinned cell stays while its query is pinned."""
    if place is None:
        pin(PinnedCell())
    elif place != pinned_token(cell, rows, columns):
        side, at = place
        pin(PinnedCell(key=columns[at][0]) if side else PinnedCell(query=rows[at][0]))


def links_from(cell: PinnedCell) -> None:
    """Links to the pages that compute a weight and to the page that changes it."""
    what = "the pinned cell" if cell.is_cell else "the pinned token" if str(cell) else "a pair"
    labels = {
        "head_steps": "This head, step by step",
        "query_key": f"Query and key of {what}",
        "interventions": f"Interventions on {'the pinned cell' if cell.is_cell else 'this head'}",
    }
    with st.container(horizontal=True):
        for name, label in labels.items():
            draw_page_link(name, label)


def parse_pinned(text: str, rows: int, columns: int) -> PinnedCell:
    """The cell that a text such as q5k2 names, within so many rows and columns."""
    match = CELL.fullmatch(text)
    query, key = (match[1], match[2]) if match else (None, None)
    return PinnedCell(
        int(query) if query and int(query) < rows else None,
        int(key) if key and int(key) < columns else None,
    )


def parse_heads(text: str, count: int) -> tuple[int, ...]:
    """The heads that a text such as 0.2 names; none if one of them does not exist."""
    if text == EVERY:
        return tuple(range(count))
    if not re.fullmatch(r"\d{1,4}(\.\d{1,4})*", text):
        return ()
    heads = sorted({int(head) for head in text.split(".")})
    return tuple(heads) if heads[-1] < count else ()


def _choose_pinned(cell: PinnedCell) -> None:
    """Choose this query and key on the page Query and key as well."""
    for name, place in (("query", cell.query), ("key", cell.key)):
        if place is not None:
            choose(name, place)
