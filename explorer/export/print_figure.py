"""Any figure in print quality as PNG, SVG or PDF: Vega draws a chart, matplotlib all others."""

import io
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.charts.figure_data import FigureData, TableData, corner_of
from explorer.charts.theme import LIGHT
from explorer.export.fonts import are_common, fallback_families, font_folders, printable
from explorer.text.number_format import three
from explorer.text.visible_text import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE_WIDTH = 6.3
"""Inches: the text of an A4 page with usual margins."""
DOTS_PER_INCH = 300
Size = tuple[int, int]
CHART_SIZE, DOTS_PER_PIXEL = (600, 260), 3
"""Pixels of the plot of a chart without a size of its own, and those of a PNG."""
MOST_PRINTED_LABELS = 48
"""With more rows than this, only some are labelled; in a narrower picture fewer."""
LONGEST_PRINTED, LABEL_APART = 25, 8 / 72
"""Characters of a label, and inches from one to the next."""
BOTH = " and "
"""In the name of a side, it means that each label names two things."""
NOTE_LETTERS, TITLE_LETTERS = 110, 90
"""Characters of the note and of the title in one line."""
EMBEDDED = 42
"""Matplotlib's code for TrueType fonts in a PDF, so its letters stay letters."""
MOST_PRINTED_ROWS, MOST_PRINTED_COLUMNS = 40, 30
"""The most rows of a printed table."""
DECADES = 3
"""The number of decades of a log scale, as on the screen."""
FAINTEST = 3 / 255
"""The smallest share of the colour scale for a value that is not zero."""

_one_at_a_time = Lock()  # matplotlib's settings belong to the whole process


def as_picture(data: FigureData | TableData, kind: str, fine: float = 1.0) -> bytes:
    """The figure as a file of this kind: "png", of this share of the resolution, "svg" or "pdf".

    A matrix has queries down, keys across; masked cells are hatched, and what is not a number is
    grey. In an SVG its cells are one picture with a pixel each, and texts stay texts where most
    systems have their letters; else they are outlines, which need no font. A PDF embeds the
    letters that it uses.
    """
    if isinstance(data, TableData) and data.spec is not None:
        return chart_as_picture(data.title, data.spec, kind, fine=fine)
    file = io.BytesIO()
    with printing(texts_of(data)) as more:
        figure = draw(data, more, PAGE_WIDTH)
        # Without a date, so that the same picture gives the same file.
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        figure.savefig(file, format=kind, dpi=DOTS_PER_INCH * fine, metadata=metadata)
    return file.getvalue()


def draw(
    data: FigureData | TableData, more: tuple[str, ...], width: float, height: float | None = None
) -> "Figure":
    """A matrix or table, not yet saved. Call it inside `printing`, which yields `more` families.

    `width` is in inches; the size of type does not depend on it. A matrix of a fixed `height` may
    have cells that are wider than high.
    """
    if isinstance(data, FigureData):
        return _figure(data, more, width, height)
    return _table(data, more, width)


def chart_as_picture(
    title: str, chart: Mapping[str, Any], kind: str, size: Size = CHART_SIZE, fine: float = 1.0
) -> bytes:
    """The chart as a file; its plot has its own size or this one, or as much as its labels need."""
    import vl_convert  # 40 MB and 0.4 s for its first chart, only when somebody exports one

    for folder in font_folders():
        vl_convert.register_font_directory(str(folder))
    spec = _with_page_style(title, chart, size)
    if kind == "svg":
        return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).encode()
    if kind == "pdf":
        spec["background"] = "transparent"
        return bytes(vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[]))
    scale = DOTS_PER_PIXEL * fine
    return bytes(vl_convert.vegalite_to_png(spec, scale=scale, allowed_base_urls=[]))


def _with_page_style(title: str, chart: Mapping[str, Any], size: Size) -> dict[str, Any]:
    """The chart with the size, title and colours that it has on the page."""
    hints = chart.get("usermeta", {})
    least = hints.get("least", size)
    larger = max(1, least[0] / size[0], least[1] / size[1])
    width, height = (round(side * larger) for side in size)
    spec = {"width": width, "height": height, **chart, "background": LIGHT.background}
    config = {
        "font": "sans-serif",
        "title": {"anchor": "start", "fontSize": 13, "fontWeight": "normal"},
        "axisBand": {"labelOverlap": True},
        "axisX": {"labelOverlap": True, "labelSeparation": 12},
        "range": {"category": list(LIGHT.series)},
        "mark": {"color": LIGHT.series[0]},
    }
    titles = {"text": title, "subtitle": hints.get("note", "")}
    return {**spec, "title": titles, "config": {**config, **spec.get("config", {})}}


@contextmanager
def printing(texts: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Give matplotlib the letters of these texts; yields the extra font families.

    One caller at a time.
    """
    import matplotlib as mpl  # 1 s and 40 MB, only when somebody exports a picture

    with _one_at_a_time, mpl.rc_context({"svg.hashsalt": "explorer", "hatch.linewidth": 0.5}):
        more = () if are_common(texts) else fallback_families()
        mpl.rcParams["font.family"] = ["sans-serif", *more]
        mpl.rcParams["svg.fonttype"] = "path" if more else "none"
        mpl.rcParams["pdf.fonttype"] = EMBEDDED
        yield more


def texts_of(data: FigureData | TableData) -> list[str]:
    if isinstance(data, FigureData):
        names = data.unit, data.note, data.row_name, data.column_name
        return [data.title, *names, *data.rows, *data.columns]
    cells = [str(cell) for column in data.columns.values() for cell in column[:MOST_PRINTED_ROWS]]
    return [data.title, *data.columns, *cells]


def _figure(
    data: FigureData,
    more: tuple[str, ...] = (),
    width: float = PAGE_WIDTH,
    fixed: float | None = None,
) -> "Figure":
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    values = data.values.detach().double().cpu().numpy()
    visible = data.visible.cpu().numpy()
    finite = np.ma.masked_where(~visible | ~np.isfinite(values), values)
    is_diverging = data.scale == "diverging"
    top = _top(data, finite)
    stops = LIGHT.diverging if is_diverging else LIGHT.sequential
    if not is_diverging:
        stops = ("#ffffff", *stops[1:])
    colours = LinearSegmentedColormap.from_list("explorer", list(stops))

    rows, columns = values.shape
    room, side = width - _around(width), min(rows, columns)
    square = min(9.0, max(2.2, room * rows / max(1, columns) + 1.4))  # cells, within a page
    height = fixed or square
    # A wide matrix may need more height for its row labels.
    has_height = columns <= rows or room / columns >= LABEL_APART
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(
        _fullness(data, finite, top),
        cmap=colours,
        vmin=-1.0 if is_diverging else 0.0,
        vmax=1.0,
        interpolation="nearest",
        aspect="equal" if not fixed and has_height and max(rows, columns) <= 4 * side else "auto",
    )
    for row, cells in enumerate(~visible):
        axes.broken_barh(
            _runs(cells), (row - 0.5, 1), hatch="/////", facecolor="none", edgecolor=LIGHT.border
        )
    unknown = visible & np.isnan(values)
    for row, is_nan in enumerate(unknown):
        axes.broken_barh(_runs(is_nan), (row - 0.5, 1), facecolor=LIGHT.muted)
    family = ["monospace", *more]
    most = round(MOST_PRINTED_LABELS * room / (PAGE_WIDTH - _around(PAGE_WIDTH)))
    down, across = (_labels(side, most) for side in sides(data))
    axes.set_yticks(*down, fontfamily=family, fontsize=7)
    axes.set_xticks(*across, fontfamily=family, fontsize=7, rotation=90)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    row_name, column_name = corner_of(plain(data.row_name), plain(data.column_name))
    axes.set_ylabel(row_name, fontsize=8)
    axes.set_xlabel(column_name, fontsize=8)
    axes.spines[:].set_color(LIGHT.border)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02)
    bar.set_label(plain(data.unit + (", log" if data.log else "")), fontsize=8)
    places, ends = _ticks(data, float(top.max()))
    bar.set_ticks(places, labels=ends, fontsize=7)
    bar.outline.set_edgecolor(LIGHT.border)
    note = data.note + " Grey: not a number." * bool(unknown.any())
    figure.supxlabel(_in_lines(note, NOTE_LETTERS, width), fontsize=6, color=LIGHT.muted)
    figure.suptitle(_in_lines(data.title, TITLE_LETTERS, width), fontsize=9)
    _strike(figure, axes, set(data.hidden))
    return figure


def _table(data: TableData, more: tuple[str, ...], width: float) -> "Figure":
    """The first rows as lines of text, and the number of rows."""
    from matplotlib.figure import Figure

    rows = [*data.rows]
    cells = [
        [plain(_cell_text(cell), LONGEST_PRINTED) for cell in row[:MOST_PRINTED_COLUMNS]]
        for row in rows[:MOST_PRINTED_ROWS]
    ]
    figure = Figure(figsize=(width, 0.6 + 0.165 * (len(cells) + 1)), layout="constrained")
    axes = figure.add_subplot()
    axes.axis("off")
    names = [plain(name, LONGEST_PRINTED) for name in data.columns][:MOST_PRINTED_COLUMNS]
    if names:
        _draw_cells(figure, axes, names, cells, more)
    notes = [] if rows else ["There are no rows."]
    for most, count, what in (
        (MOST_PRINTED_ROWS, len(rows), "rows"),
        (MOST_PRINTED_COLUMNS, len(data.columns), "columns"),
    ):
        if count > most:
            notes.append(f"The first {most} of {count:,} {what}.")
    if notes:
        figure.supxlabel(" ".join(notes), fontsize=6, color=LIGHT.muted)
    figure.suptitle(_in_lines(data.title, TITLE_LETTERS, width), fontsize=9)
    return figure


def _draw_cells(
    figure: "Figure", axes: "Axes", names: list[str], rows: list[list[str]], more: tuple[str, ...]
) -> None:
    """Each column is as wide as its texts; the page becomes wider if they need more room."""
    table = axes.table(
        rows or [[""] * len(names)],
        colLabels=names,
        loc="upper left",
        cellLoc="left",
        colLoc="left",
    )
    table.auto_set_font_size(False)
    table.set_fontsize(7)
    table.set_in_layout(False)  # or the axes would shrink to make room for it
    table.auto_set_column_width([*range(len(names))])  # when it is drawn
    room = 1 - 2 * table.AXESPAD
    longest = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for (_, place), cell in table.get_celld().items():
        cell.PAD = 0.1 + 0.25 / max(1, longest[place])  # of its text
        cell.set_height(room / (1 + max(1, len(rows))))
        cell.set_edgecolor(LIGHT.border)
        cell.set_linewidth(0.5)
        cell.get_text().set_fontfamily(["monospace", *more])
    figure.draw_without_rendering()
    needed = sum(table[0, place].get_width() for place in range(len(names)))
    width, height = figure.get_size_inches()
    beyond = max(0.0, needed / room - 1) * axes.get_position().width * width
    figure.set_size_inches(width + beyond, height)


def _cell_text(cell: object) -> str:
    return "" if cell is None else three(cell) if isinstance(cell, float) else str(cell)


def _top(data: FigureData, values: np.ma.MaskedArray) -> np.ndarray:
    """The value of the fullest colour: (1, 1), (rows, 1) or (1, columns)."""
    over = {"row": (1,), "column": (0,)}.get(data.scaling, (0, 1))
    largest = np.abs(values.filled(0.0)).max(over, keepdims=True)
    if data.top and data.scaling == "all":
        largest = np.full((1, 1), data.top)
    return np.where(largest > 0, largest, 1.0)


def _fullness(data: FigureData, values: np.ma.MaskedArray, top: np.ndarray) -> np.ma.MaskedArray:
    """The share of the colour scale from −1 to 1; as on the screen, only zero is 0."""
    share = np.ma.minimum(np.abs(values) / top, 1.0)
    if data.log:
        share = np.ma.maximum(1 + np.log10(np.maximum(share, 1e-30)) / DECADES, 0.0)
    if data.scale != "diverging":
        share = np.ma.maximum(share, FAINTEST)
    return np.ma.where(values == 0, 0.0, np.sign(values) * share)


def _ticks(data: FigureData, top: float) -> tuple[list[float], list[str]]:
    """Places along the colour bar, and the values there."""
    places = [step / 4 for step in range(5)]
    ends = [f"{top * place:.3g}" for place in places]
    if data.log:
        places = [step / DECADES for step in range(DECADES + 1)]
        ends = [f"{top * 10**-step:.3g}" for step in range(DECADES, -1, -1)]
    if data.scaling != "all":
        least = "1/1000 of it" if data.log else "0"
        places, ends = [0.0, 1.0], [least, f"largest of its {data.scaling}"]
    if data.log:
        ends[0] = f"≤ {ends[0]}"
    if data.scale != "diverging":
        return places, ends
    below = [f"−{end}" for end in ends[:0:-1]]
    return [-place for place in places[:0:-1]] + places, below + ends


def _strike(figure: "Figure", axes: "Axes", hidden: set[int]) -> None:
    """Draw a line through the labels of the hidden columns."""
    from matplotlib.lines import Line2D

    struck = [
        label
        for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        if int(place) in hidden
    ]
    if not struck:
        return
    figure.draw_without_rendering()  # gives every label its place
    figure.set_layout_engine("none")  # and keeps it there
    for label in struck:
        label.set_color(LIGHT.muted)
        box = label.get_window_extent().transformed(figure.transFigure.inverted())
        middle = (box.x0 + box.x1) / 2
        figure.add_artist(Line2D([middle] * 2, [box.y0, box.y1], color=LIGHT.text, linewidth=0.8))


def _runs(cells: np.ndarray) -> list[tuple[float, int]]:
    """Start and length of each run of true cells."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], cells.astype(np.int8), [0]))))
    return [(start - 0.5, int(end - start)) for start, end in edges.reshape(-1, 2)]


def _around(width: float) -> float:
    """Inches beside the cells, for labels and the colour bar."""
    return min(2.2, width / 2)


def _in_lines(text: str, letters: int, width: float) -> str:
    """The text in as many lines as it needs, of so many letters on a page's width."""
    return plain("\n".join(textwrap.wrap(text, round(letters * width / PAGE_WIDTH))))


def sides(data: FigureData) -> list[Mapping[int, str]]:
    """The labels of the rows and of the columns, by their places.

    Where a label names two things, such as "head 0, key 3", only the first is printed, once for all
    rows that share it and in their middle.
    """
    named = (data.rows, data.row_name), (data.columns, data.column_name)
    return [_groups(labels) if BOTH in name else dict(enumerate(labels)) for labels, name in named]


def _groups(labels: Sequence[str]) -> Mapping[int, str]:
    places: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label.partition(", ")[0], []).append(place)
    return {where[len(where) // 2]: group for group, where in places.items()}


def _labels(side: Mapping[int, str], most: int) -> tuple[list[int], list[str]]:
    every = max(1, -(-len(side) // most))
    ticks = [*side.items()][::every]
    return [place for place, _ in ticks], [plain(label, LONGEST_PRINTED) for _, label in ticks]


def plain(text: str, longest: int | None = None) -> str:
    """The literal text: matplotlib would typeset text between two dollar signs as a formula."""
    letters = printable(text)
    return cut(letters, longest or len(letters)).replace("$", r"\$")
