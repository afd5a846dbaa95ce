"""Named numbers one under the other, and numbers for the columns of a table."""

from __future__ import annotations

import streamlit as st
from torch import Tensor


def facts(rows: list[tuple[str, str]]) -> None:
    """Named numbers, one under the other."""
    st.dataframe(
        {"what": [name for name, _ in rows], "value": [value for _, value in rows]},
        hide_index=True,
        height=38 + 35 * len(rows),
        column_config={"value": st.column_config.TextColumn(alignment="right")},
    )


def column(values: Tensor) -> list[float | None]:
    """Numbers for a table, empty where there is none."""
    return [None if value != value else value for value in values.tolist()]


def steps(lines: list[tuple[str, str]], told: str) -> None:
    """Lines of a name and a value; a table of the page itself, read by screen readers too.

    It holds no user's words. `told` says what the table is.
    """
    st.table(
        {"step": [name for name, _ in lines], "value": [value for _, value in lines]},
        border="horizontal",
        hide_index=True,
        hide_header=True,
        alt=told,
    )
