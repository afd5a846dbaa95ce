"""What leaves a page: a figure, its numbers, its views as one page; a session of kept views."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from urllib.parse import quote, urlsplit

import streamlit as st
import torch

from explorer.app import address, address_parameters, widget_state
from explorer.app.choice import TRAINED
from explorer.app.choosing import switch_page
from explorer.app.context import PageContext, current_context, parts_of
from explorer.app.controls import popover
from explorer.app.page_table import ROWS
from explorer.app.reader import network, owner
from explorer.app.reader_store import KEPT, OWN_LESSONS, BeginLesson, KeptSession
from explorer.app.session import session, state_of
from explorer.app.throttle import turn, turn_elsewhere
from explorer.charts.figure_data import (
    Figure,
    FigureData,
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
from explorer.components.kept_list import kept_list
from explorer.components.mounting import PageView, drawn_views
from explorer.components.tools import hand_over, remembered
from explorer.export import session_page
from explorer.export.kept_view import KeptView, one_line
from explorer.export.offline_page import offline_html
from explorer.export.print_figure import as_picture
from explorer.export.session_lesson import lesson_name, session_toml
from explorer.export.session_slides import session_pdf
from explorer.lessons.lesson import address_of
from explorer.lessons.lesson_file import LessonError, lesson_from
from explorer.system.limits import MB
from explorer.text.visible_text import literal, literal_sentence

Make = Callable[[], Sequence[Figure]]
THUMBNAIL, TITLE_LINE = 0.12, 60
"""A small picture's share of the resolution of print; letters of a title on a line of a slide."""


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
        kept = KEPT.of(owner())  # a process that has none takes the list that the browser remembers
        KEPT.take_back(owner(), remembered(None if kept is None else kept.listed()))
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
    mode = st.context.theme.type
    return [
        ("Figure for print, PNG", "png", partial(as_picture, figure, "png")),
        ("Figure for print, SVG", "svg", partial(as_picture, figure, "svg")),
        ("Figure for print, PDF", "pdf", partial(as_picture, figure, "pdf")),
        ("Numbers, CSV", "csv", partial(as_csv, figure)),
        ("Numbers, JSON", "json", partial(as_json, figure)),
        ("Numbers, npz", "npz", partial(as_npz, figure)),
        ("These views, offline HTML", "html", partial(offline, figure, views, mode)),
    ]


def offline(figure: Figure, views: Sequence[PageView], mode: str | None) -> bytes:
    """Everything that the page draws: interactive views, and charts as pictures."""
    pictures = chain.from_iterable(_pictures(view, view.figures) for view in views)
    return offline_html(figure.title, figure.about, [*pictures], mode)


def _pictures(view: PageView, figures: Make) -> list[OfflineView | OfflinePicture]:
    """The interactive view, else its figures as pictures."""
    if view.offline is not None:
        return [view.offline]
    return [OfflinePicture(figure.title, as_picture(figure, "svg")) for figure in figures()]


def origin(context: PageContext) -> dict[str, str]:
    """Where the exported numbers come from: the model, the text and the chosen head."""
    at = context.choice
    pair = {"second sentence": at.pair} if at.pair else {}
    place = {"part": at.part, "layer": str(at.layer), "head": str(at.head)}
    step = {"training step": str(at.training_step)} if at.training_step != TRAINED else {}
    return {"model": context.title, **step, "sentence": at.text, **pair, **place}


ORIGIN_FIELDS = ("model", "training step", "sentence", "second sentence", "run")
"""What tells two views of one page apart."""


@st.dialog("Session", width="large", icon=":material/slideshow:", on_dismiss="rerun")
def draw_session() -> None:
    kept_session = KEPT.of(owner()) or KeptSession()
    if not kept_session.views:
        st.markdown(
            "Nothing is kept yet: “Add to session” under a figure keeps the view on screen."
        )
        return
    st.text_input(
        "Name",
        kept_session.title,
        key="kept_name",
        on_change=lambda: KEPT.call(owner(), widget_state.get("kept_name")),
    )
    _draw_files(kept_session)
    views, reader, chosen = kept_session.views, owner(), widget_state.get("kept_chosen")
    at = next((at for at, view in enumerate(views) if view.id == chosen), 0)
    widget_state.put("kept_chosen", views[at].id)

    def choose(place: int, by: int = 0) -> None:
        widget_state.put("kept_chosen", views[place].id)
        KEPT.move(reader, views[place].id, by)

    kept_list(views, at, choose, is_dark=st.context.theme.type == "dark")
    _draw_view(at, views[at], len(views))


def _draw_view(at: int, view: KeptView, count: int) -> None:
    reader, title, note = owner(), f"kept_title_{view.id}", f"kept_note_{view.id}"
    with st.container(border=True, gap="small"):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
            st.text_input(
                f"View {at + 1}",
                view.title,
                key=title,
                on_change=lambda: KEPT.rename(reader, view.id, title=widget_state.get(title)),
            )
            for label, icon, act, disabled in (
                ("Earlier", "arrow_back", partial(KEPT.move, by=-1), at == 0),
                ("Later", "arrow_forward", partial(KEPT.move, by=1), at == count - 1),
                ("Remove", "delete", KEPT.remove, False),
            ):
                st.button(
                    label,
                    icon=f":material/{icon}:",
                    key=f"kept_{label.lower()}_{view.id}",
                    disabled=disabled,
                    on_click=act,
                    args=(reader, view.id),
                )
        st.text_area(
            "Notes",
            view.note,
            key=note,
            height=68,
            placeholder="Plain text: the notes of a talk, the caption of a slide",
            label_visibility="collapsed",
            on_change=lambda: KEPT.rename(reader, view.id, note=widget_state.get(note)),
        )
        if not view.is_drawn:
            link = _base() + quote(view.address, safe="/?=&%+")  # or a character ends the link
            st.markdown(
                "The picture of this view is no longer here: "
                f"[open the view]({link}) and add it again."
            )
        elif origin := [view.about[name] for name in ORIGIN_FIELDS if name in view.about]:
            st.caption(" · ".join(map(literal, origin)))


def _draw_files(kept_session: KeptSession) -> None:
    """The session as an offline page, as slides and as a lesson.

    The run that a button begins makes the file, so it has all that was typed before.
    """
    title, views, base = kept_session.title, kept_session.views, _base()
    elsewhere = partial(turn_elsewhere, network(), owner())
    files: dict[str, Callable[[], bytes]] = {
        "html": partial(session_page.session_html, title, views, base, st.context.theme.type),
        "pdf": partial(session_pdf, title, views, base, elsewhere),
        "toml": partial(session_toml, title, views),
    }
    size, why = session_page.size_of(views), session_page.refusal(views)
    ending = ""
    with st.container(horizontal=True, gap="small"):
        if why:
            st.text(why)
        for label, kind, about in (
            ("Offline HTML", "html", f"{size / MB:.1f} MB, no server needed"),
            ("Slides, PDF", "pdf", "A page for each view; takes a few seconds"),
            ("Talk, TOML", "toml", "A lesson without tasks, to open on the page Lessons"),
        ):
            icon, key = ":material/download:", f"kept_{kind}"
            if not (why and kind == "html") and st.button(label, icon=icon, key=key, help=about):
                ending = kind
        if st.button(
            "Open as a talk",
            icon=":material/slideshow:",
            key="kept_talk",
            help="Present it with a step for each view. It is then among your lessons",
        ):
            _open_as_talk(kept_session)
    if ending:
        with st.spinner("Making the file …"):
            hand_over(f"{file_name(title)}.{ending}", files[ending]())


def _open_as_talk(kept_session: KeptSession) -> None:
    file, name = session_toml(kept_session.title, kept_session.views), kept_session.title
    try:
        lesson = lesson_from(file, f"{lesson_name(name)}.toml", address_parameters.of_pages())
        OWN_LESSONS.add(owner(), lesson, len(file))
    except LessonError as error:
        st.text(str(error))
        return
    state_of(BeginLesson).name = lesson.name
    switch_page("lessons")


def _base() -> str:
    """The address of this app, without the page."""
    parts = urlsplit(st.context.url or "")
    path = parts.path.rstrip("/").removesuffix(f"/{session().page}")
    return f"{parts.scheme}://{parts.netloc}{path}" if parts.scheme in ("http", "https") else ""


OF_LINK = {*address_parameters.OF_LESSON, *address_parameters.AROUND, "version"}
"""The parameters of an address that concern the app around a view."""


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
    count = len(kept_session.views) if (kept_session := KEPT.of(owner())) else 0
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
    views: Mapping[str, PageView],
    own: Mapping[str, Make],
) -> KeptView:
    """What the page has drawn, as it is now; nothing is computed again.

    The page's own figures come first, on a slide and on a page.
    """
    pictures: list[OfflineView | OfflinePicture] = []
    figures: dict[str, list[Figure]] = {}
    for key in sorted(views, key=lambda key: key not in own):
        figures[key] = [_own_copy(figure) for figure in own.get(key, views[key].figures)()]
        pictures += _pictures(views[key], partial(figures.__getitem__, key))
    origin = {name: text for name, text in about.items() if text}
    kept = [*chain(*map(figures.__getitem__, [*own] or _main_views(views, figures)))]
    small = as_picture(sorted(kept, key=is_table)[0], "png", THUMBNAIL) if kept else b""
    return KeptView(one_line(title), address, "", origin, pictures, kept, small)


def _main_views(
    views: Mapping[str, PageView], figures: Mapping[str, Sequence[Figure]]
) -> list[str]:
    """The first view that is no table, with what stands beside it."""
    halves = [key for key, view in views.items() if view.offline and view.offline.half]
    drawn = (key for key, some in figures.items() if not all(map(is_table, some)))
    main = [*drawn, *figures][:1]
    return halves[:2] if halves and main[0] in halves[:2] else main


def _own_copy(figure: Figure) -> Figure:
    """The figure with a copy of its numbers: a slice would keep the whole tensor in memory."""
    if not isinstance(figure, FigureData):
        return figure
    allowed = None if figure.allowed is None else figure.allowed.detach().cpu().clone()
    values = figure.values.detach().to("cpu", torch.float32, copy=True)
    return replace(figure, values=values, allowed=allowed)


def _keep(about: Mapping[str, str], own: Mapping[str, Make]) -> None:
    with turn():  # a chart becomes a picture
        view = kept_view(_title(about), _address(), about, drawn_views(), own)
        last = (KEPT.of(owner()) or KeptSession()).views[-1:]
        if last and (last[0].address, last[0].pictures) == (view.address, view.pictures):
            st.toast("This view is already in your session.")
        elif why := KEPT.add(owner(), view):
            st.toast(why, duration="infinite")


def _title(about: Mapping[str, str]) -> str:
    """The sentence, the title of the page, and the head where the page is of one."""
    reader = session()
    page = reader.pages[reader.page].title if reader.page in reader.pages else "View"
    row = ROWS.get(reader.page)
    if row and row.part == "attention" and {"layer", "head"} <= about.keys():
        page = f"{page}: layer {about['layer']}, head {about['head']}"
    text, room = about.get("sentence") or about.get("run") or "", TITLE_LINE - len(page)
    whole_words = text[: room + 1].rpartition(" ")[0] or text[:room]
    short = text if len(text) <= room else f"{whole_words.rstrip()}…"
    return f"“{short}” · {page}" if text else page


def _in_words(about: Mapping[str, str]) -> Mapping[str, str]:
    """The same, with the kind of attention in the words of the bar."""
    context = current_context()
    if context is None or "part" not in about:
        return about
    parts = {part.name: part.title for part in parts_of(context.entry)}
    words = {**about, "part": parts.get(about["part"], about["part"])}
    return {"attention" if name == "part" else name: text for name, text in words.items()}


def _address() -> str:
    """The address of the page on screen, with its model."""
    reader = session()
    parameters = [(name, value) for name, value in address.everything() if name not in OF_LINK]
    if reader.shown_model and "model" in reader.bar and "model" not in dict(parameters):
        parameters = [("model", reader.shown_model), *parameters]
    return address_of(reader.page, parameters)
