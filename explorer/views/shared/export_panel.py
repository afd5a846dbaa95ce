"""The export of what is on screen: a figure for print, its numbers, or all views as one page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from explorer.app.choice import TRAINED
from explorer.app.context import PageContext
from explorer.app.controls import popover
from explorer.catalog.folders import own_name
from explorer.charts.figure_data import (
    Figure,
    OfflinePicture,
    OfflineView,
    as_csv,
    as_json,
    as_npz,
    file_name,
    is_table,
    short_titles,
)
from explorer.components import mounting, tools
from explorer.components.mounting import PageView
from explorer.export.offline_page import offline_html
from explorer.export.print_figure import as_picture
from explorer.text.visible_text import literal_sentence
from explorer.views.shared.keep_session import draw_keep, recall

Make = Callable[[], Sequence[Figure]]


def export_button(about: Mapping[str, str], own: Mapping[str, Make] | None = None) -> None:
    """Every figure of the page in every format behind one button; a click makes the file.

    `about` says where the numbers come from. `own` makes the main figures, by the key of their
    view, if the page knows more about them than the view.
    """
    views = mounting.drawn_views()
    if not views:
        return
    mine = {key: make for key, make in (own or {}).items() if key in views}
    with st.container(gap=None):  # elements without height take no room
        recall()
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _draw_export(about, mine, views)
            draw_keep(about, mine)


def _draw_export(
    about: Mapping[str, str], mine: Mapping[str, Make], views: Mapping[str, PageView]
) -> None:
    with popover("export", ":material/download:") as opened:
        if not opened.open:
            return
        others = {key: view.figures for key, view in views.items() if key not in mine}
        keys = {
            replace(figure, about={**about, **figure.about}): key
            for key, make in {**mine, **others}.items()
            for figure in make()
        }
        figure = _choose_figure(sorted(keys, key=is_table))
        tools.save_picture(keys[figure], figure.title, f"{file_name(figure.title)}-screen.svg")
        for label, ending, file in file_formats(figure, [*views.values()]):
            st.download_button(
                label,
                data=file,
                file_name=f"{file_name(figure.title)}.{ending}",
                key=f"export_{ending}",
                on_click="ignore",
                width="stretch",
            )


def _choose_figure(figures: Sequence[Figure]) -> Figure:
    """The figure to export, by default the page's own picture or the one at its top."""
    if len(figures) == 1:
        st.caption(literal_sentence(figures[0].title))
        return figures[0]
    names = short_titles([figure.title for figure in figures])
    place = st.selectbox(
        "Figure",
        range(len(figures)),
        format_func=lambda place: f"{place + 1} · {names[place]}",
        key="export_figure",
    )
    return figures[place]


def file_formats(
    figure: Figure, views: Sequence[PageView]
) -> list[tuple[str, str, Callable[[], bytes]]]:
    """For each format its label, the ending of the file, and the function that makes it."""
    return [
        ("Figure for print, PNG", "png", partial(as_picture, figure, "png")),
        ("Figure for print, SVG", "svg", partial(as_picture, figure, "svg")),
        ("Figure for print, PDF", "pdf", partial(as_picture, figure, "pdf")),
        ("Numbers, CSV", "csv", partial(as_csv, figure)),
        ("Numbers, JSON", "json", partial(as_json, figure)),
        ("Numbers, npz", "npz", partial(as_npz, figure)),
        ("These views, offline HTML", "html", partial(offline, figure, views)),
    ]


def offline(figure: Figure, views: Sequence[PageView]) -> bytes:
    """Everything that the page draws: interactive views, and charts as pictures."""
    pictures: list[OfflineView | OfflinePicture] = []
    for view in views:
        if view.offline is not None:
            pictures.append(view.offline)
            continue
        charts = view.figures()
        pictures += [OfflinePicture(chart.title, as_picture(chart, "svg")) for chart in charts]
    return offline_html(figure.title, figure.about, pictures)


def origin(context: PageContext) -> dict[str, str]:
    """Where the exported numbers come from: the model, the text and the chosen head."""
    at = context.choice
    pair = {"second sentence": at.pair} if at.pair else {}
    place = {"part": at.part, "layer": str(at.layer), "head": str(at.head)}
    is_step = at.training_step != TRAINED
    step = {"training step": str(at.training_step)} if is_step else {}
    return {"model": own_name(at.model), **step, "sentence": at.text, **pair, **place}
