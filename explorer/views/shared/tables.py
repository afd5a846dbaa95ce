"""Tables of names and values, and columns of numbers."""

import streamlit as st
from torch import Tensor

INDENT = "\u2003"
"""A space as wide as a letter, which Markdown does not take away."""

DIGIT, COMMA = "\u2007", "\u2008"
"""Spaces as wide as these."""


def facts(rows: list[tuple[str, str]]) -> None:
    """Named numbers, one under the other, which can be copied and searched."""
    st.dataframe(
        {"what": [name for name, _ in rows], "value": [value for _, value in rows]},
        hide_index=True,
        height=38 + 35 * len(rows),
        column_config={"value": st.column_config.TextColumn(alignment="right")},
    )


def column(values: Tensor) -> list[float | None]:
    """Numbers for a table, empty where they are NaN."""
    return [None if value != value else value for value in values.tolist()]


def value_table(lines: list[tuple[str, str]], description: str) -> None:
    """Names and values as part of the page itself, read by screen readers too; no user's words."""
    st.table(
        {"step": [name for name, _ in lines], "value": [value for _, value in lines]},
        border="horizontal",
        hide_index=True,
        hide_header=True,
        alt=description,
    )


def indented_table(
    rows: list[tuple[int, str, str, str, int]], heads: tuple[str, ...], description: str
) -> None:
    """Lines of a depth, a name, two formulas and a count; deeper ones are indented.

    It holds no user's words.
    """
    st.table(
        {
            heads[0]: [f"{INDENT * depth}{name}" for depth, name, *_ in rows],
            heads[1]: [formula for _, _, formula, _, _ in rows],
            heads[2]: [numbers for _, _, _, numbers, _ in rows],
            heads[3]: aligned([count for *_, count in rows]),
        },
        border="horizontal",
        hide_index=True,
        alt=description,
    )


def aligned(counts: list[int]) -> list[str]:
    """Whole numbers as text of one width, so that their digits stand under each other."""
    widest = f"{max(counts, default=0):,}"
    blank = "".join(COMMA if character == "," else DIGIT for character in widest)
    return [f"{blank[: len(blank) - len(f'{count:,}')]}{count:,}" for count in counts]
