"""A kept session as slides: a PDF of 16:9, one page per view, its figures as vectors.

Matplotlib draws the words and matrices of a page, and Vega draws the charts; pypdf puts them on the
page, since neither can read the other's drawings. Every font is in the file.
"""

import io
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from explorer.charts.figure_data import Figure, FigureData, TableData, short_titles
from explorer.charts.theme import LIGHT
from explorer.export import print_figure
from explorer.export.kept_view import KeptView
from explorer.export.print_figure import chart_as_picture, plain
from explorer.export.session_page import GONE
from explorer.text.visible_text import cut

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing
    from pypdf import PageObject

SLIDE_WIDTH, SLIDE_HEIGHT, MARGIN = 960, 540, 40
"""Points, of 72 an inch: a slide of 13.3 by 7.5 inches."""
MOST_ON_SLIDE = 3
"""Figures on one slide; with more of them the last row could not read anything."""
TITLE_TYPE, WORDS_TYPE, SMALL_TYPE = 24, 14, 11
"""Points of type."""
LEADING, LETTER = 1.4, 0.65
"""Relative to the size of type: a line's height, and the width of a letter that the font lacks."""
EM, FIXED = 100, 1 << 16
"""The size in points at which a letter is measured, and FreeType's parts of a point."""
GAP = 16
FOOT = MARGIN / 2
LARGEST_SCALE, CHART_SCALE, MATRIX_SCALE = 2.2, 1.4, (1.7, 1.7, 1.35)
"""The most that a figure is enlarged, and the usual enlargement of a chart and of a matrix (alone,
one of two, one of three)."""
WIDER, AROUND_MATRIX, AROUND_PLOT = 1.6, (1.6, 0.9), 60
"""The most that a cell is as wide as it is high; inches beside and above a matrix before it is
enlarged; pixels around the plot of a chart."""


Box = tuple[float, float, float, float]
"""Left, bottom, width and height in points, from the lower left corner of the slide."""


Turn = Callable[[], AbstractContextManager[object]]
"""Each piece of the work waits for its turn."""


def session_pdf(
    title: str, views: Sequence[KeptView], base: str = "", turn: Turn = nullcontext
) -> bytes:
    """The slides; their links begin with `base`, the address of the app that drew them.

    Matplotlib first draws everything into one file, since every file embeds the fonts again, which
    takes 0.2 s per font.
    """
    from pypdf import PdfReader, PdfWriter  # only when somebody exports slides

    slides = [_Slide(title, view, f"{at} / {len(views)}", base) for at, view in enumerate(views, 1)]
    printed = PdfReader(io.BytesIO(_printed_pages(slides, turn))).pages
    writer, at = PdfWriter(), 0
    for slide in slides:
        with turn():
            page, at = writer.add_page(printed[at]), at + 1
            for figure, box in zip(slide.figures, slide.boxes, strict=True):
                if isinstance(figure, TableData) and figure.spec is not None:
                    wide, high = (round(side / CHART_SCALE) - AROUND_PLOT for side in box[2:])
                    size = wide, min(high, wide)
                    chart = chart_as_picture(figure.title, figure.spec, "pdf", size)
                    _put(PdfReader(io.BytesIO(chart)).pages[0], page, box)
                else:
                    _put(printed[at], page, box)
                    at += 1
    writer.add_metadata({"/Title": title})
    writer.compress_identical_objects()
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def _printed_pages(slides: Sequence["_Slide"], turn: Turn) -> bytes:
    """For each slide a page with its words, one for each figure that is no chart; each a turn."""
    from matplotlib.backends.backend_pdf import PdfPages

    file = io.BytesIO()
    figures = [figure for slide in slides for figure in slide.figures]
    texts = [text for slide in slides for text in slide.texts]
    texts += chain(*map(print_figure.texts_of, figures))
    pages = PdfPages(file, metadata={"CreationDate": None})
    for slide in slides:
        with turn(), print_figure.printing(texts):
            pages.savefig(slide.words())
        for figure, box in zip(slide.figures, slide.boxes, strict=True):
            if isinstance(figure, FigureData) or figure.spec is None:
                scale = 72 * MATRIX_SCALE[len(slide.figures) - 1]
                wide, high = box[2] / scale, box[3] / scale
                if isinstance(figure, FigureData):
                    rows, columns = figure.values.shape
                    beside, above = AROUND_MATRIX
                    high = min(high, above + (wide - beside) * max(1, rows / max(1, columns)))
                    wide = min(wide, beside + WIDER * (high - above) * columns / max(1, rows))
                with turn(), print_figure.printing(texts) as more:
                    drawing = print_figure.draw(figure, more, max(wide, 2.0), high)
                    pages.savefig(drawing, dpi=print_figure.DOTS_PER_INCH)
    with turn(), print_figure.printing(texts):  # this writes the fonts
        pages.close()
    return file.getvalue()


def main_figures(figures: Sequence[Figure]) -> Sequence[Figure]:
    """The figures on a slide, under titles without what all share."""
    chosen = figures[:MOST_ON_SLIDE]
    if len(chosen) < 2:
        return chosen
    names = short_titles([figure.title for figure in chosen])
    return [replace(figure, title=name) for figure, name in zip(chosen, names, strict=True)]


class _Slide:
    """The layout of one page: lines of words, and boxes for the figures between them."""

    def __init__(self, title: str, view: KeptView, place: str, base: str) -> None:
        self.session, self.place = title, place
        self.link = base + view.address if base else None
        origin = [(k, v) for k, v in view.about.items() if k != "sentence" or v not in view.title]
        self.figures = main_figures(view.figures)
        about = " · ".join(f"{name} {text}" for name, text in origin)
        if len(self.figures) == 1:  # its name stands once, over it in the slide's own type
            name = self.figures[0].title
            about = " · ".join(
                [name, *(f"{key} {text}" for key, text in origin if not _says(name, key, text))]
            )
            self.figures = [replace(self.figures[0], title="")]
        caption = view.note if view.is_drawn else GONE
        self.head = [
            (line, size, colour, above if at == 0 else 0)
            for text, size, colour, above in (
                (view.title, TITLE_TYPE, LIGHT.text, 0),
                (about, WORDS_TYPE, LIGHT.muted, GAP / 2),
            )
            for at, line in enumerate(_lines(text, size, 2))
        ]
        self.caption = _lines(caption, WORDS_TYPE, 3)
        self.texts = title, view.title, about, caption
        head_height = sum(size * LEADING + above for _, size, _, above in self.head)
        top = SLIDE_HEIGHT - MARGIN - head_height - GAP
        bottom = FOOT + SMALL_TYPE + GAP + len(self.caption) * WORDS_TYPE * LEADING
        self.boxes = _boxes(self.figures, (MARGIN, bottom, SLIDE_WIDTH - 2 * MARGIN, top - bottom))

    def words(self) -> "Drawing":
        from matplotlib.figure import Figure

        slide = Figure(figsize=(SLIDE_WIDTH / 72, SLIDE_HEIGHT / 72), facecolor="white")
        y: float = SLIDE_HEIGHT - MARGIN
        for line, size, colour, above in self.head:
            y -= size * LEADING + above
            _write(slide, line, MARGIN, y, size, colour)
        y = FOOT + SMALL_TYPE + GAP
        for line in reversed(self.caption):
            _write(slide, line, MARGIN, y, WORDS_TYPE, LIGHT.text)
            y += WORDS_TYPE * LEADING
        _write(slide, cut(self.session, 80), MARGIN, FOOT, SMALL_TYPE, LIGHT.muted)
        right = SLIDE_WIDTH - MARGIN
        _write(slide, self.place, right, FOOT, SMALL_TYPE, LIGHT.muted, ha="right")
        if self.link:
            where = SLIDE_WIDTH / 2, FOOT, SMALL_TYPE, LIGHT.series[0]
            _write(slide, "Open in the app", *where, ha="center", url=self.link)
        return slide


def _says(title: str, name: str, text: str) -> bool:
    """Whether a title has this part of the origin."""
    words = f"{name} {text}" if text.isdecimal() else text
    return words.casefold() in title.casefold()


def _write(
    slide: "Drawing", text: str, x: float, y: float, size: float, colour: str, **how: Any
) -> None:
    """Write one line with its baseline at `y`; `how` has matplotlib's own options."""
    where = x / SLIDE_WIDTH, y / SLIDE_HEIGHT
    slide.text(*where, plain(text), fontsize=size, color=colour, **how)


def _lines(text: str, size: float, most: int) -> list[str]:
    """The text in lines that fit on a slide, at most `most`; the last one is cut if needed."""
    room = (SLIDE_WIDTH - 2 * MARGIN) / size
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and _wide(joined) <= room:
            lines[-1] = joined
        else:
            while _wide(word) > room:  # a script without spaces, or an address
                head = _head(word, room)
                lines.append(head)
                word = word[len(head) :]
            lines.append(word)
    if len(lines) > most:
        last = lines[most - 1]
        if last != (part := _head(last, room - 1)):
            last = part.rpartition(" ")[0] or part
        lines = [*lines[: most - 1], f"{last}…"]
    return lines


def _wide(text: str) -> float:
    """The width of a text, in sizes of type."""
    return sum(map(_letter, text))


@lru_cache(4_096)
def _letter(letter: str) -> float:
    """The width of a letter in the font of the slides; East Asian letters are square."""
    from matplotlib.font_manager import findfont, get_font
    from matplotlib.ft2font import LoadFlags

    if east_asian_width(letter) in "WF":
        return 1.0
    font = get_font(findfont("DejaVu Sans"))
    if not font.get_char_index(ord(letter)):
        return LETTER
    font.set_size(EM, 72)
    wide = font.load_char(ord(letter), LoadFlags.NO_HINTING).linearHoriAdvance
    return float(wide) / FIXED / EM


def _head(text: str, room: float) -> str:
    """The longest beginning that fits, at least one letter."""
    end = 1
    while end < len(text) and _wide(text[: end + 1]) <= room:
        end += 1
    return text[:end]


def _boxes(figures: Sequence[Figure], room: Box) -> list[Box]:
    """A box for each figure: side by side; three charts in two rows."""
    left, bottom, width, height = room
    are_charts = all(isinstance(figure, TableData) for figure in figures)
    rows = 2 if are_charts and len(figures) > 2 else 1
    columns = max(1, ceil(len(figures) / rows))
    wide, high = (width - GAP * (columns - 1)) / columns, (height - GAP * (rows - 1)) / rows
    return [
        (
            left + at % columns * (wide + GAP),
            bottom + (rows - 1 - at // columns) * (high + GAP),
            wide,
            high,
        )
        for at in range(len(figures))
    ]


def _put(figure: "PageObject", page: "PageObject", box: Box) -> None:
    """Draw a figure in the middle of its box, as large as possible."""
    from pypdf import Transformation

    left, bottom, width, height = box
    wide, high = float(figure.mediabox.width), float(figure.mediabox.height)
    by = min(width / wide, height / high, LARGEST_SCALE)
    to = left + (width - wide * by) / 2, bottom + (height - high * by) / 2
    page.merge_transformed_page(figure, Transformation().scale(by).translate(*to))
