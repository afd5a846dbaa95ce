"""A table with a box for each row, and the deletion of those that are chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import streamlit as st

from explorer.app.controls import chosen_rows


def choose_in_table(
    key: str, names: Sequence[str], rows: Sequence[Mapping[str, object]], **columns: Any
) -> list[str]:
    """The names of the rows that are chosen.

    Another table has another key: what was chosen by its place would be something else.
    """
    table = st.dataframe(
        rows,
        key=f"{key}_{crc32(' '.join(names).encode())}",
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
        width="stretch",
        height=min(422, 37 + 35 * len(rows)),
        column_config=columns,
    )
    return [names[row] for row in chosen_rows(table, len(names))]


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def draw_deletion(
    key: str, what: str, chosen: list[str], delete: Callable[[list[str]], None], more: str = ""
) -> None:
    """A button that asks again."""
    count = counted(len(chosen), what)
    with st.popover("Delete", icon=":material/delete:", key=f"{key}_popover", disabled=not chosen):
        st.markdown(f"This deletes **{count}** for good.{more}")
        st.button(f"Delete {count}", key=key, type="primary", on_click=delete, args=(chosen,))
