"""Tables: of columns, of the strongest values, and of names and values."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import streamlit as st
import torch
from torch import Tensor

from explorer.charts.figure_data import WINDOW
from explorer.components.mounting import chart_stage
from explorer.text.number_format import three

HEADER, ROW = 38, 35
"""Pixels of the names of the columns, and of each row."""

DIGIT, COMMA = "\u2007", "\u2008"
"""Spaces as wide as these."""


def table(
    columns: Mapping[str, Any] | Sequence[Mapping[str, object]],
    *,
    right: Collection[str] = (),
    numbers: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    most_rows: int = 11,
    **how: Any,
) -> Any:
    """Columns by name, or rows; a reader can sort, search and copy them.

    `right` names the columns of numbers written as text, which are right-aligned; `numbers` has the
    formats of other numbers, and `config` has columns of any other kind. A table of more than
    `most_rows` scrolls. With `height=WINDOW`, which needs a key, it takes the window that is left.
    """
    rows = len(next(iter(columns.values()), ())) if isinstance(columns, Mapping) else len(columns)
    kinds: dict[str, Any] = {
        **{name: st.column_config.TextColumn(alignment="right") for name in right},
        **{name: st.column_config.NumberColumn(format=of) for name, of in (numbers or {}).items()},
        **(config or {}),
    }
    how = {"height": HEADER + ROW * max(1, min(rows, most_rows)), **how}
    on_stage = how["height"] == WINDOW
    if on_stage:
        how["height"] = "stretch"
    with chart_stage(how["key"]) if on_stage else nullcontext():
        return st.dataframe(columns, hide_index=True, column_config=kinds, **how)


def strongest_table(
    values: Tensor | Sequence[float],
    axes: Mapping[str, Sequence[object]],
    unit: str,
    *,
    most: int = 8,
    error: float = 0.0,
    more: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """A row for each of the largest of `values`, whatever their sign.

    `axes` name the dimensions of `values` and the places along each. `more` has further columns,
    numbers as text, for a list of values. A value that may be off by `error` has fewer digits.
    """
    values = torch.as_tensor(values)
    flat = values.flatten()
    order = flat.abs().nan_to_num().argsort(descending=True, stable=True)[:most]
    places = torch.unravel_index(order, values.shape)
    columns = {
        name: [names[at] for at in place.tolist()]
        for (name, names), place in zip(axes.items(), places, strict=True)
    }
    numbers = {unit: [three(value, error) for value in flat[order].tolist()]}
    numbers |= {name: [texts[at] for at in order.tolist()] for name, texts in (more or {}).items()}
    table(columns | numbers, right=numbers)


def facts(rows: Sequence[tuple[str, str]]) -> None:
    """Names and numbers, one under the other, which a reader can copy and search."""
    names, values = [name for name, _ in rows], [value for _, value in rows]
    table({"what": names, "value": values}, right=["value"], most_rows=len(rows))


def column(values: Tensor) -> list[float | None]:
    """Numbers for a table, empty where they are NaN."""
    return [None if value != value else value for value in values.tolist()]


def static_table(
    columns: Mapping[str, Sequence[object]], description: str, *, has_header: bool = True
) -> None:
    """Columns as part of the page itself, for screen readers too; without words of a user."""
    st.table(
        columns, border="horizontal", hide_index=True, hide_header=not has_header, alt=description
    )


def value_table(lines: Sequence[tuple[str, str]], description: str) -> None:
    """Names and values, as a static table."""
    names, values = [name for name, _ in lines], [value for _, value in lines]
    static_table({"step": names, "value": values}, description, has_header=False)


def align_counts(counts: list[int]) -> list[str]:
    """Whole numbers as text of one width, so that their digits are aligned."""
    widest = f"{max(counts, default=0):,}"
    blank = "".join(COMMA if character == "," else DIGIT for character in widest)
    return [f"{blank[: len(blank) - len(f'{count:,}')]}{count:,}" for count in counts]
