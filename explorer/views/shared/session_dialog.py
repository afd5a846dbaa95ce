"""The window with the views that were kept: named, put in order, and exported."""

from collections.abc import Callable
from functools import partial
from urllib.parse import quote, urlsplit

import streamlit as st

from explorer.app import address_table, widget_state
from explorer.app.choosing import switch_page
from explorer.app.kept_session import KEPT, KeptSession
from explorer.app.own_lessons import OWN_LESSONS, BeginLesson
from explorer.app.reader import network, owner
from explorer.app.session import session, state_of
from explorer.app.throttle import turn_elsewhere
from explorer.components.file_download import hand_over
from explorer.export import session_page
from explorer.export.kept_view import KeptView
from explorer.export.session_lesson import lesson_name, session_toml
from explorer.export.session_slides import session_pdf
from explorer.lessons.lesson_check import checked
from explorer.lessons.lesson_file import LessonError, lesson_from
from explorer.system.limits import MB
from explorer.text.literal import literal

SAID = ("model", "training step", "sentence", "second sentence", "run")
"""Of where a view comes from, what tells two of a page apart."""


def kept_now() -> KeptSession:
    """This reader's."""
    return KEPT.of(owner()) or KeptSession()


@st.dialog("Session", width="large", icon=":material/slideshow:", on_dismiss="rerun")
def draw_session() -> None:
    kept = kept_now()
    if not kept.views:
        st.markdown(
            "Nothing is kept yet: “Add to session” under a figure keeps the view on screen."
        )
        return
    st.text_input("Name", kept.title, key="kept_name", on_change=_call)
    _draw_files(kept)
    for at, view in enumerate(kept.views):
        _draw_view(at, view, kept)


def _draw_view(at: int, view: KeptView, kept: KeptSession) -> None:
    with st.container(border=True, gap="small"):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
            st.text_input(
                f"View {at + 1}",
                view.title,
                key=f"kept_title_{view.id}",
                on_change=_name,
                args=(view.id,),
            )
            last = len(kept.views) - 1
            moves = ("Up", "arrow_upward", -1, 0), ("Down", "arrow_downward", 1, last)
            for says, icon, by, end in moves:
                _draw_button(says, icon, view, _move, by, disabled=at == end)
            _draw_button("Remove", "delete", view, _remove)
        st.text_area(
            "Notes",
            view.note,
            key=f"kept_note_{view.id}",
            height=68,
            placeholder="Plain text: the notes of a talk, the caption of a slide",
            label_visibility="collapsed",
            on_change=_note,
            args=(view.id,),
        )
        if not view.is_drawn:
            st.markdown(
                "Its picture is not here any more: "
                f"[open it again]({_markdown_link(view.address)}) to draw it, and add it again."
            )
        elif said := [view.about[name] for name in SAID if name in view.about]:
            st.caption(" · ".join(map(literal, said)))


def _draw_button(
    says: str,
    icon: str,
    view: KeptView,
    act: Callable[..., None],
    *args: int,
    disabled: bool = False,
) -> None:
    st.button(
        says,
        icon=f":material/{icon}:",
        key=f"kept_{says.lower()}_{view.id}",
        disabled=disabled,
        on_click=act,
        args=(view.id, *args),
    )


def _draw_files(kept: KeptSession) -> None:
    """The session as an offline page, as slides and as a lesson.

    A file is made in the run that its button begins, which knows all that was typed before.
    """
    base = _base()
    size = session_page.size_of(kept.views)
    asked: tuple[str, Callable[[], bytes]] | None = None
    with st.container(horizontal=True, gap="small"):
        if why := session_page.refusal(kept.views):
            st.text(why)
        elif _is_asked("Offline HTML", "html", f"{size / MB:.1f} MB, no server needed"):
            asked = "html", partial(session_page.session_html, kept.title, kept.views, base)
        if _is_asked("Slides, PDF", "pdf", "A page for each view; drawn in some seconds"):
            turns = partial(turn_elsewhere, network(), owner())
            asked = "pdf", partial(session_pdf, kept.title, kept.views, base, turns)
        about = "A lesson without tasks, to be opened again on the page Lessons"
        if _is_asked("Talk, TOML", "toml", about):
            asked = "toml", partial(session_toml, kept.title, kept.views)
        if st.button(
            "Open as a talk",
            icon=":material/slideshow:",
            key="kept_talk",
            help="Present it: a step for each view. It is among your lessons then",
        ):
            _open_as_talk(kept)
    if asked is not None:
        ending, make = asked
        with st.spinner("The file is being made …"):
            hand_over(f"{lesson_name(kept.title)}.{ending}", make())


def _is_asked(label: str, ending: str, about: str) -> bool:
    return st.button(label, icon=":material/download:", key=f"kept_{ending}", help=about)


def _open_as_talk(kept: KeptSession) -> None:
    file = session_toml(kept.title, kept.views)
    try:
        lesson = lesson_from(file, f"{lesson_name(kept.title)}.toml")
        OWN_LESSONS.add(owner(), checked(lesson, address_table.of_pages()), len(file))
    except LessonError as error:
        st.text(str(error))
        return
    state_of(BeginLesson).name = lesson.name
    switch_page("lessons")


def _markdown_link(address: str) -> str:
    """As a link that ends where the address ends, whatever is in it."""
    return _base() + quote(address, safe="/?=&%+")


def _call() -> None:
    KEPT.call(owner(), widget_state.get("kept_name"))


def _name(view_id: str) -> None:
    KEPT.rename(owner(), view_id, title=widget_state.get(f"kept_title_{view_id}"))


def _note(view_id: str) -> None:
    KEPT.rename(owner(), view_id, note=widget_state.get(f"kept_note_{view_id}"))


def _move(view_id: str, by: int) -> None:
    KEPT.move(owner(), view_id, by)


def _remove(view_id: str) -> None:
    KEPT.remove(owner(), view_id)


def _base() -> str:
    """The address of this app, without that of the page."""
    parts = urlsplit(st.context.url or "")
    path = parts.path.rstrip("/").removesuffix(f"/{session().page}")
    return f"{parts.scheme}://{parts.netloc}{path}" if parts.scheme in ("http", "https") else ""
