"""A view that a reader keeps: its pictures, figures, words and address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from secrets import token_hex
from sys import getsizeof

from explorer.charts.figure_data import Figure, FigureData, OfflinePicture, OfflineView
from explorer.export.offline_page import markup
from explorer.lessons.lesson_file import ADDRESS, LONG, SHORT
from models.file_text import visible

LONGEST_VIEW_TITLE, LONGEST_VIEW_NOTE, LONGEST_VIEW_ADDRESS = SHORT, LONG, ADDRESS
"""Characters, as a lesson's step may have."""
ADDRESS_TOO_LONG = (
    f"The address of this view has more than {LONGEST_VIEW_ADDRESS:,} characters, the most that "
    "are kept: shorten its text."
)
OF_A_CELL, OF_A_LETTER = 60, 4
"""About the bytes that Python needs for a cell of a table, and for a letter of a chart as text."""


@dataclass(frozen=True, eq=False)
class KeptView:
    """One view of a session; without `pictures` only its words and address are left.

    `about` has the origin of the numbers: the model, the sentence. `figures` are for its slide.
    """

    title: str
    address: str
    note: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    pictures: Sequence[OfflineView | OfflinePicture] = ()
    figures: Sequence[Figure] = ()
    thumbnail: bytes = b""
    id: str = field(default_factory=lambda: token_hex(8))

    @property
    def is_drawn(self) -> bool:
        return bool(self.pictures or self.figures)

    @cached_property
    def size(self) -> int:
        """Its bytes in memory, without the code of its views, which all views share."""
        pictures = sum(
            len(part.data) + len(part.attributes)
            if isinstance(part, OfflineView)
            else len(part.svg)
            for part in self.pictures
        )
        words = sum(map(getsizeof, (self.title, self.address, self.note, *self.about.values())))
        return pictures + words + len(self.thumbnail) + sum(map(_bytes_of, self.figures))

    @cached_property
    def file_size(self) -> int:
        """Its bytes in an HTML file, without the code of its views and its words."""
        return sum(len(markup(part).encode()) for part in self.pictures)

    def called(self, title: str, note: str) -> "KeptView":
        """The view with these words, cut to the lengths that a lesson's step may have."""
        return replace(self, title=one_line(title), note=visible(note.strip())[:LONGEST_VIEW_NOTE])


def one_line(title: str) -> str:
    """A title without line breaks and invisible characters, cut to the longest allowed."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in title).split())
    return plain[:LONGEST_VIEW_TITLE].rstrip() or "Untitled"


def _bytes_of(figure: Figure) -> int:
    if isinstance(figure, FigureData):
        labels = sum(map(len, (*figure.rows, *figure.columns)))
        return figure.values.nbytes * (1 if figure.allowed is None else 2) + labels
    cells = sum(map(len, figure.columns.values()))
    return cells * OF_A_CELL + OF_A_LETTER * len(str(figure.spec or ""))
