"""A picture on paper: PNG and SVG of a matrix in print quality, drawn by matplotlib."""

from __future__ import annotations

import io
import textwrap
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from explorer.figures.theme import LIGHT
from explorer.taken import Taken

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 6.3
"""Inches: the text of an A4 page with usual margins."""
DOTS_PER_INCH = 300
MOST_LABELS = 48
"""More rows than this are labelled every so many, as many as can be read."""
LONGEST_LABEL = 24
LINE = 110
"""Characters of the note in one line."""

_one_at_a_time = Lock()  # matplotlib's settings are those of the whole process


def on_paper(taken: Taken, kind: str) -> bytes:
    """The picture as a file of this kind, "png" or "svg".

    Queries down, keys across; forbidden cells are hatched and what is no number is grey.
    An SVG keeps its words as words and its cells as one picture of a pixel each.
    """
    import matplotlib as mpl  # a second and 40 MB that only those pay who take a picture

    file = io.BytesIO()
    with _one_at_a_time, mpl.rc_context({"svg.fonttype": "none", "hatch.linewidth": 0.5}):
        _figure(taken).savefig(file, format=kind, dpi=DOTS_PER_INCH, metadata=_metadata(kind))
    return file.getvalue()


def _metadata(kind: str) -> dict[str, str | None]:
    """No date: the same picture is the same file."""
    return {"Date": None} if kind == "svg" else {}


def _figure(taken: Taken) -> Figure:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    values = taken.values.detach().double().cpu().numpy()
    visible = taken.visible.cpu().numpy()
    shown = np.ma.masked_where(~visible | ~np.isfinite(values), values)
    is_diverging = taken.scale == "diverging"
    largest = float(np.abs(shown).max()) if shown.count() else 0.0
    top = taken.top or largest or 1.0
    stops = LIGHT.diverging if is_diverging else LIGHT.sequential
    colours = LinearSegmentedColormap.from_list("explorer", ["#ffffff", *stops[1:]])
    if is_diverging:
        colours = LinearSegmentedColormap.from_list("explorer", list(stops))

    rows, columns = values.shape
    figure = Figure(figsize=(WIDTH, _height(rows, columns)), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(
        shown,
        cmap=colours,
        vmin=-top if is_diverging else 0.0,
        vmax=top,
        interpolation="nearest",
        aspect="equal" if max(rows, columns) <= 4 * min(rows, columns) else "auto",
    )
    for row, seen in enumerate(visible):
        axes.broken_barh(
            _runs(~seen), (row - 0.5, 1), hatch="/////", facecolor="none", edgecolor=LIGHT.border
        )
    axes.set_yticks(*_labels(taken.rows), fontfamily="monospace", fontsize=7)
    axes.set_xticks(*_labels(taken.columns), fontfamily="monospace", fontsize=7, rotation=90)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    axes.set_ylabel(f"{_plain(taken.row_name)} ↓", fontsize=8)
    axes.set_xlabel(f"{_plain(taken.column_name)} →", fontsize=8)
    axes.spines[:].set_color(LIGHT.border)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02)
    bar.set_label(_plain(taken.unit), fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_edgecolor(LIGHT.border)
    note = "\n".join(textwrap.wrap(taken.note, LINE))
    figure.supxlabel(_plain(note), fontsize=6, color=LIGHT.muted)
    figure.suptitle(_plain(taken.title), fontsize=9)
    return figure


def _runs(cells: np.ndarray) -> list[tuple[float, int]]:
    """Where the stretches of true cells begin, and how long they are."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], cells.astype(np.int8), [0]))))
    return [(start - 0.5, int(end - start)) for start, end in edges.reshape(-1, 2)]


def _height(rows: int, columns: int) -> float:
    """Inches for square cells, within a page."""
    return min(9.0, max(2.2, (WIDTH - 2.2) * rows / max(1, columns) + 1.4))


def _labels(labels: tuple[str, ...]) -> tuple[range, list[str]]:
    every = -(-len(labels) // MOST_LABELS)
    places = range(0, len(labels), every)
    return places, [_plain(_cut(labels[place])) for place in places]


def _cut(label: str) -> str:
    half = LONGEST_LABEL // 2
    return label if len(label) <= LONGEST_LABEL else f"{label[:half]}…{label[-half:]}"


def _plain(text: str) -> str:
    """As it stands: two dollar signs would begin a formula."""
    return text.replace("$", r"\$")
