"""What is on screen, to take away: a picture for print, its numbers, or the whole view offline."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import streamlit as st

from explorer.app.context import page_context
from explorer.components import mounting
from explorer.export import offline_page
from explorer.export.figure_data import Taken, as_csv, as_json, as_npz
from explorer.export.print_figure import as_picture
from explorer.text.literal import literal


def take_away(make: Callable[[], Taken]) -> None:
    """Every way out, behind one button; nothing is made before it is asked for."""
    with st.popover(
        "Take away", icon=":material/download:", key="take_away", on_change="rerun"
    ) as opened:
        if not opened.open:
            return
        taken = make()
        st.caption(literal(taken.title))
        for label, ending, file in _ways(taken):
            st.download_button(
                label,
                data=file,
                file_name=f"{file_name(taken.title)}.{ending}",
                key=f"take_{ending}",
                on_click="ignore",
                width="stretch",
            )


def _ways(taken: Taken) -> list[tuple[str, str, Callable[[], bytes]]]:
    views = mounting.drawn()
    return [
        ("Picture for print, PNG", "png", partial(as_picture, taken, "png")),
        ("Picture for print, SVG", "svg", partial(as_picture, taken, "svg")),
        ("Numbers, CSV", "csv", partial(as_csv, taken)),
        ("Numbers, JSON", "json", partial(as_json, taken)),
        ("Numbers, npz", "npz", partial(as_npz, taken)),
        ("These views as one offline page", "html", partial(_page, taken, views)),
    ]


def _page(taken: Taken, views: list[mounting.Drawn]) -> bytes:
    return offline_page.page(taken.title, taken.about, views)


def file_name(title: str) -> str:
    """Letters, digits and dashes: a name that every system takes."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "picture"


def about() -> dict[str, str]:
    """How what is on screen came to be, in the words of the choices."""
    at = page_context().choice
    pair = {"second sentence": at.pair} if at.pair else {}
    place = {"part": at.part, "layer": str(at.layer), "head": str(at.head)}
    return {"model": at.model, "sentence": at.text, **pair, **place}
