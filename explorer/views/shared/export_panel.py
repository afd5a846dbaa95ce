"""Export of what is on screen: a figure for print, its numbers, or its views as one page."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import streamlit as st

from explorer.app.context import PageContext
from explorer.components import mounting
from explorer.export import offline_page
from explorer.export.figure_data import FigureData, as_csv, as_json, as_npz
from explorer.export.print_figure import as_picture
from explorer.text.literal import literal


def export_button(make: Callable[[], FigureData]) -> None:
    """Every format behind one button; nothing is made before it is asked for."""
    with st.popover(
        "Export", icon=":material/download:", key="export", on_change="rerun"
    ) as opened:
        if not opened.open:
            return
        data = make()
        st.caption(literal(data.title))
        for label, ending, file in file_formats(data):
            st.download_button(
                label,
                data=file,
                file_name=f"{file_name(data.title)}.{ending}",
                key=f"export_{ending}",
                on_click="ignore",
                width="stretch",
            )


def file_formats(data: FigureData) -> list[tuple[str, str, Callable[[], bytes]]]:
    """For each format: what it is, the file's ending, and how the file is made."""
    views = mounting.drawn()
    return [
        ("Figure for print, PNG", "png", partial(as_picture, data, "png")),
        ("Figure for print, SVG", "svg", partial(as_picture, data, "svg")),
        ("Numbers, CSV", "csv", partial(as_csv, data)),
        ("Numbers, JSON", "json", partial(as_json, data)),
        ("Numbers, npz", "npz", partial(as_npz, data)),
        (
            "These views, offline HTML",
            "html",
            partial(offline_page.offline_html, data.title, data.about, views),
        ),
    ]


def file_name(title: str) -> str:
    """Letters, digits and dashes: a name that every system takes."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "figure"


def origin(context: PageContext) -> dict[str, str]:
    """Where the exported numbers come from: the model, the text and the chosen head."""
    at = context.choice
    pair = {"second sentence": at.pair} if at.pair else {}
    place = {"part": at.part, "layer": str(at.layer), "head": str(at.head)}
    return {"model": at.model, "sentence": at.text, **pair, **place}
