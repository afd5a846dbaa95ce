"""The figures of a page as data: their numbers as CSV, JSON and npz, and the message of a view.

The views make them and the exports read them.
"""

import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, np.dtype[Any]]

LONGEST_FILE_NAME = 160
"""In bytes of UTF-8, without its ending."""

WINDOW: Final = "window"
"""The height of a figure that takes the window that is left below its top."""


def corner_of(row: str, column: str) -> tuple[str, str]:
    """What the corner of a matrix says about its rows and columns: of an attention, a sentence."""
    return f"{row} ↓", "reads " * ((row, column) == ("query", "key")) + f"{column} →"


@dataclass(frozen=True, eq=False)
class FigureData:
    """The values of a matrix (rows, columns), and how they are drawn.

    `allowed` is true where a row may attend to a column, None where all may. `about` has the
    origin of the numbers: the model, the text, the place in the model. The colour scale ends at
    `top`, or at the largest value where that is None, of all or of each "row" or "column"
    (`scaling`); `log` spreads it over three decades. The labels of the `hidden` columns are struck
    through; `note` is printed under the picture.
    """

    values: Tensor
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    title: str
    unit: str = "weight"
    row_name: str = "query"
    column_name: str = "key"
    scale: str = "sequential"
    allowed: Tensor | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    top: float | None = None
    scaling: str = "all"
    log: bool = False
    hidden: tuple[int, ...] = ()
    note: str = ""

    @property
    def visible(self) -> Tensor:
        """Which cells are visible (rows, columns)."""
        shape = self.values.shape
        return torch.ones(shape, dtype=torch.bool) if self.allowed is None else self.allowed

    def lines(self) -> Iterator[list[object]]:
        """One line per row under a line of column labels; a masked cell is empty.

        Every label begins with its place: equal tokens stay distinct, and a spreadsheet takes no
        token for a formula.
        """
        yield [" ".join(corner_of(self.row_name, self.column_name)), *_number(self.columns)]
        rows = zip(_number(self.rows), self.values.tolist(), self.visible.tolist(), strict=True)
        for label, row, visible in rows:
            yield [label, *(v if seen else "" for v, seen in zip(row, visible, strict=True))]

    def fields(self) -> dict[str, Any]:
        """The rows, columns and values; a masked cell or a value that is not finite is null."""
        has_number = self.visible & self.values.isfinite()
        cells = [
            [value if finite else None for value, finite in zip(*row, strict=True)]
            for row in zip(self.values.tolist(), has_number.tolist(), strict=True)
        ]
        return {
            self.row_name: list(self.rows),
            self.column_name: list(self.columns),
            "values": cells,
        }

    def arrays(self) -> dict[str, Array]:
        return {
            "values": self.values.detach().cpu().numpy(),
            "allowed": self.visible.cpu().numpy(),
            "rows": np.array(self.rows, dtype=np.str_),
            "columns": np.array(self.columns, dtype=np.str_),
        }


Value = str | float | int | None


@dataclass(frozen=True, eq=False)
class TableData:
    """Columns of equal length by their names: the rows of a chart or a list.

    `spec` is the Vega-Lite chart that draws them, with its data.
    """

    columns: Mapping[str, Sequence[Value]]
    title: str
    unit: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] | None = None

    @property
    def rows(self) -> Iterator[tuple[Value, ...]]:
        return zip(*self.columns.values(), strict=True)

    def lines(self) -> Iterator[list[object]]:
        """The names, then the rows; a text that a spreadsheet takes for a formula is quoted."""
        yield [_quote(name) for name in self.columns]
        for row in self.rows:
            yield [_quote(cell) if isinstance(cell, str) else cell for cell in row]

    def fields(self) -> dict[str, Any]:
        """The columns; a number that is not finite is null."""
        return {"columns": {name: [*map(_finite, row)] for name, row in self.columns.items()}}

    def arrays(self) -> dict[str, Array]:
        """Every column as `columns/` and its name: texts, or numbers (NaN where there is none)."""
        return {f"columns/{name}": _array(values) for name, values in self.columns.items()}


Figure = FigureData | TableData


def is_table(figure: Figure) -> bool:
    """Whether it is drawn as lines of text, neither as a matrix nor as a chart."""
    return isinstance(figure, TableData) and figure.spec is None


@dataclass(frozen=True)
class OfflineView:
    """A view on a page, with everything that is needed to draw it elsewhere."""

    kind: str
    key: str
    data: bytes
    height: int | str
    choice: object
    html: str
    css: str
    js: str
    title: str = ""
    half: bool = False
    behind: Mapping[str, object] = field(default_factory=dict)
    """Answers that arrived after the picture, since they took longer, by name."""

    @property
    def attributes(self) -> str:
        """Its attributes as JSON; its data are separate."""
        values = {"kind": self.kind, "key": self.key, "choice": self.choice, "behind": self.behind}
        return json.dumps(values)


@dataclass(frozen=True)
class OfflinePicture:
    title: str
    svg: bytes


def as_csv(figure: Figure) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(figure.lines())
    return text.getvalue().encode("utf-8-sig")  # with the mark that spreadsheets ask for


def as_json(figure: Figure) -> bytes:
    """Everything in one object; `about` is an object of its own, so no name occurs twice."""
    fields = {**_description(figure), **figure.fields()}
    return json.dumps(fields, ensure_ascii=False, indent=1).encode()


def as_npz(figure: Figure) -> bytes:
    """The arrays, and in `about` their description as JSON; numpy.load needs no pickle for it."""
    file = io.BytesIO()
    arrays = {"about": np.array(json.dumps(_description(figure))), **figure.arrays()}
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def short_titles(titles: Sequence[str]) -> list[str]:
    """The titles without the parts that all share, such as the model: a list cuts long titles."""
    parts = [title.split(" · ") for title in titles]
    beginnings = (names[:-1] for names in parts if len(names) > 1)
    places = [set(names) for names in zip(*beginnings, strict=False)]
    shared = {place for place, names in enumerate(places) if len(names) == 1}
    return [
        " · ".join([*(name for at, name in enumerate(begins) if at not in shared), last])
        for *begins, last in parts
    ]


def file_name(title: str) -> str:
    """Letters of any script, digits and dashes: a name that every system takes."""
    letters = unicodedata.normalize("NFC", title.lower())
    kept = "".join(c if unicodedata.category(c)[0] in "LMN" else "-" for c in letters)
    name = re.sub("-+", "-", kept).strip("-").encode("utf-8", "ignore")[:LONGEST_FILE_NAME]
    return name.decode("utf-8", "ignore").strip("-") or "figure"


def _description(figure: Figure) -> dict[str, Any]:
    return {"title": figure.title, "unit": figure.unit, "about": {**figure.about}}


def _number(labels: tuple[str, ...]) -> list[str]:
    return [f"{place} {label}" for place, label in enumerate(labels)]


def _quote(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would take it for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _finite(value: Value) -> Value:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _array(values: Sequence[Value]) -> Array:
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values], dtype=np.str_)
    return np.array([math.nan if value is None else value for value in values])
