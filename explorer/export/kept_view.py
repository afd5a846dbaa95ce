"""A view that a reader has kept: the bytes that were drawn, its figures, its words, its address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from secrets import token_hex
from sys import getsizeof

from explorer.charts.figure_data import Figure, FigureData, OfflinePicture, OfflineView
from explorer.export.offline_page import markup
from explorer.lessons.lesson_file import ADDRESS, LONG, SHORT

LONGEST_VIEW_TITLE, LONGEST_VIEW_NOTE, LONGEST_VIEW_ADDRESS = SHORT, LONG, ADDRESS
"""Characters, as a lesson's step may have."""
ADDRESS_TOO_LONG = (
    f"The address of this view has more than {LONGEST_VIEW_ADDRESS:,} characters, the most that "
    "are kept: shorten its text."
)
MOST_KEPT_FIGURES = 6
"""Of a view, on one slide."""
OF_A_CELL = 60
"""Bytes that Python takes for a cell of a table, about."""


@dataclass(frozen=True, eq=False)
class KeptView:
    """One step of a session; without `drawn` only its words and address are left of it.

    `about` says where the numbers come from: the model, the sentence. `figures` are what a slide
    shows of it, of so many that it had.
    """

    title: str
    address: str
    note: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    drawn: Sequence[OfflineView | OfflinePicture] = ()
    figures: Sequence[Figure] = ()
    had: int = 0
    id: str = field(default_factory=lambda: token_hex(8))

    @property
    def is_drawn(self) -> bool:
        return bool(self.drawn or self.figures)

    @property
    def all_figures(self) -> int:
        return max(self.had, len(self.figures))

    @cached_property
    def size(self) -> int:
        """Bytes that it holds here, the code of its views apart, which all share."""
        pictures = sum(
            len(part.data) + len(part.attributes)
            if isinstance(part, OfflineView)
            else len(part.svg)
            for part in self.drawn
        )
        words = sum(map(getsizeof, (self.title, self.address, self.note, *self.about.values())))
        return pictures + words + sum(map(_bytes_of, self.figures))

    @cached_property
    def file_size(self) -> int:
        """Bytes that it takes in a file of HTML, the code of its views and its words apart."""
        return sum(len(markup(part).encode()) for part in self.drawn)

    def called(self, title: str, note: str) -> "KeptView":
        """With these words, cut to what a step may have."""
        return replace(self, title=one_line(title), note=note.strip()[:LONGEST_VIEW_NOTE])


def one_line(title: str) -> str:
    """A title without line breaks and letters that nobody sees, as long as one may be."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in title).split())
    return plain[:LONGEST_VIEW_TITLE].rstrip() or "Untitled"


def _bytes_of(figure: Figure) -> int:
    if isinstance(figure, FigureData):
        labels = sum(map(len, (*figure.rows, *figure.columns)))
        return figure.values.nbytes * (1 if figure.allowed is None else 2) + labels
    cells = sum(map(len, figure.columns.values()))
    return cells * OF_A_CELL * (1 if figure.spec is None else 2)
