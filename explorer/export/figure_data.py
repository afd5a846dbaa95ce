"""What a reader takes away of a picture: its numbers, whole, with the words that belong to them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class FigureData:
    """The values of a picture (rows, columns) and what they are.

    `allowed` is true where a row may attend to a column, None where all may; `about` says
    how the numbers came to be: the model, the text, the place in the model. The colours of
    a picture end at `top`, None at its largest value, or at the largest of each "row" or
    "column" where `scaling` says so; `log` spreads them over three decades. The labels of
    the `hidden` columns are struck through; `note` is printed under the picture.
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
        """Which values stand for something (rows, columns)."""
        shape = self.values.shape
        return torch.ones(shape, dtype=torch.bool) if self.allowed is None else self.allowed


def as_csv(taken: FigureData) -> bytes:
    """One line per row under a line of column labels; a masked cell is empty.

    Every label begins with its place: equal tokens stay apart, and no token of a
    stranger's is taken for a formula by a spreadsheet.
    """
    lines = io.StringIO()
    write = csv.writer(lines)
    write.writerow([f"{taken.row_name} ↓ {taken.column_name} →", *_numbered(taken.columns)])
    visible = taken.visible.tolist()
    for label, row, seen in zip(_numbered(taken.rows), taken.values.tolist(), visible, strict=True):
        write.writerow([label, *(v if s else "" for v, s in zip(row, seen, strict=True))])
    return lines.getvalue().encode("utf-8-sig")  # with the mark that spreadsheets ask for


def as_json(taken: FigureData) -> bytes:
    """Everything in one object; a masked cell is null, and so is what is no number."""
    known = taken.visible & taken.values.isfinite()
    cells = [
        [value if is_known else None for value, is_known in zip(*row, strict=True)]
        for row in zip(taken.values.tolist(), known.tolist(), strict=True)
    ]
    said = {
        "title": taken.title,
        "unit": taken.unit,
        **taken.about,
        taken.row_name: list(taken.rows),
        taken.column_name: list(taken.columns),
        "values": cells,
    }
    return json.dumps(said, ensure_ascii=False, indent=1).encode()


def as_npz(taken: FigureData) -> bytes:
    """`values`, `allowed`, `rows` and `columns` for numpy.load, which needs no pickle for them."""
    file = io.BytesIO()
    np.savez_compressed(
        file,
        values=taken.values.detach().cpu().numpy(),
        allowed=taken.visible.cpu().numpy(),
        rows=np.array(taken.rows, dtype=np.str_),
        columns=np.array(taken.columns, dtype=np.str_),
        about=np.array(json.dumps({"title": taken.title, "unit": taken.unit, **taken.about})),
    )
    return file.getvalue()


def _numbered(labels: tuple[str, ...]) -> list[str]:
    return [f"{place} {label}" for place, label in enumerate(labels)]
