"""A session kept, under the figures of a page: what is on screen is added, and the list opened."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import streamlit as st
import torch

from explorer.app import address_table, url
from explorer.app.context import current_context, parts_of
from explorer.app.kept_session import KEPT
from explorer.app.reader import owner
from explorer.app.session import session
from explorer.app.throttle import turn
from explorer.charts.figure_data import Figure, FigureData, OfflinePicture, OfflineView
from explorer.components.browser_storage import remembered
from explorer.components.mounting import Drawn, drawn
from explorer.export.kept_view import MOST_KEPT_FIGURES, KeptView, one_line
from explorer.export.pictures import as_picture
from explorer.lessons.lesson import address_of
from explorer.views.shared.session_dialog import draw_session, kept_now

OF_LINK = {*address_table.OF_LESSON, *address_table.AROUND, "version"}
"""What an address says of the app around a view."""
Make = Callable[[], Sequence[Figure]]


def recall() -> None:
    """Have the browser remember the list; where this process knows none, take the browser's."""
    kept = KEPT.of(owner())
    KEPT.take_back(owner(), remembered(None if kept is None else kept.listed()))


def draw_keep(about: Mapping[str, str], own: Mapping[str, Make]) -> None:
    """The two buttons; `about` says where the numbers of the page come from.

    `own` makes the main figures of the page, by the keys of their views.
    """
    if "export" in session().hidden:
        return
    st.button(
        "Add to session",
        icon=":material/add:",
        key="keep",
        help="Keep this view as it is, for an offline page, slides or a talk",
        on_click=_keep,
        args=(_in_words(about), own),
    )
    count = len(kept_now().views)
    if st.button(
        f"Session · {count}" if count else "Session",
        icon=":material/slideshow:",
        key="kept_session",
        help="The views that you have kept: name, order and export them",
    ):
        draw_session()


def kept_view(
    title: str,
    address: str,
    about: Mapping[str, str],
    shown: Mapping[str, Drawn],
    own: Mapping[str, Make],
) -> KeptView:
    """What the page has drawn, as it is now: nothing in it is computed again.

    The page's own figures are the first, on a slide and on a page.
    """
    pictures: list[OfflineView | OfflinePicture] = []
    figures: dict[str, list[Figure]] = {key: [] for key in own}
    own_first = sorted(shown, key=lambda key: key not in own)
    for key, each in ((key, shown[key]) for key in own_first):
        figures[key] = [_held(figure) for figure in own.get(key, each.figures)()]
        if each.offline is not None:
            pictures.append(each.offline)
        else:
            pictures += [OfflinePicture(one.title, as_picture(one, "svg")) for one in figures[key]]
    said = {name: text for name, text in about.items() if text}
    made = [*chain.from_iterable(figures.values())]
    return KeptView(
        one_line(title), address, "", said, pictures, made[:MOST_KEPT_FIGURES], had=len(made)
    )


def _held(figure: Figure) -> Figure:
    """The figure with numbers of its own: a part of a tensor would hold all of it."""
    if not isinstance(figure, FigureData):
        return figure
    allowed = None if figure.allowed is None else figure.allowed.detach().cpu().clone()
    values = figure.values.detach().to("cpu", torch.float32, copy=True)
    return replace(figure, values=values, allowed=allowed)


def _keep(about: Mapping[str, str], own: Mapping[str, Make]) -> None:
    with turn():  # a chart becomes a picture
        view = kept_view(_title(about), _address(), about, drawn(), own)
        last = kept_now().views[-1:]
        if last and (last[0].address, last[0].drawn) == (view.address, view.drawn):
            st.toast("This view is kept already.")
        elif why := KEPT.add(owner(), view):
            st.toast(why, duration="infinite")


def _title(about: Mapping[str, str]) -> str:
    """The page's, and the head that is chosen on it."""
    reader = session()
    page = reader.pages[reader.page].title if reader.page in reader.pages else "View"
    is_head = "head" in reader.bar and {"layer", "head"} <= about.keys()
    return f"{page}: layer {about['layer']}, head {about['head']}" if is_head else page


def _in_words(about: Mapping[str, str]) -> Mapping[str, str]:
    """The same, with the kind of attention called what the bar calls it, under the bar's word."""
    context = current_context()
    if context is None or "part" not in about:
        return about
    parts = {each.name: each.title for each in parts_of(context.models[context.choice.model])}
    said = {**about, "part": parts.get(about["part"], about["part"])}
    return {"attention" if name == "part" else name: text for name, text in said.items()}


def _address() -> str:
    """That of the page that is drawn, with its model."""
    reader = session()
    asked = [(name, value) for name, value in url.everything() if name not in OF_LINK]
    if reader.shown_model and "model" in reader.bar and "model" not in dict(asked):
        asked = [("model", reader.shown_model), *asked]
    return address_of(reader.page, asked)
