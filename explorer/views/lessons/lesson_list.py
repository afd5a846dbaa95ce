"""Every lesson with the progress that this browser remembers, and a lesson of the reader's own."""

from base64 import b64encode
from functools import cache

import streamlit as st

from explorer.app import address_parameters, widget_state
from explorer.app.messages import keep_note, take_notes
from explorer.app.reader import owner
from explorer.app.reader_store import OWN_LESSONS, BeginLesson
from explorer.app.session import state_of
from explorer.app.streamlit_patches import Upload
from explorer.components.lesson import lesson_list
from explorer.export.session_lesson import lesson_name
from explorer.lessons.lesson import Lesson
from explorer.lessons.lesson_catalog import PICTURES
from explorer.lessons.lesson_file import SUFFIX, LessonError, lesson_from
from explorer.views.lessons.panel import address_at, lessons_of_reader
from explorer.views.shared import widgets


def draw_lessons() -> None:
    """The list of lessons, and what is wrong with the other files of the folder."""
    catalog = lessons_of_reader()
    begin = state_of(BeginLesson)
    begins, begin.name = begin.name, ""
    rows = [_row(lesson) | {"begins": lesson.name == begins} for lesson in catalog.lessons.values()]
    lesson_list(rows)
    widgets.notes(catalog.faults)


def draw_own_lesson() -> None:
    """The upload of a lesson for this reader alone."""
    st.subheader("A lesson of your own", anchor=False)
    st.markdown(
        "A lesson is a text file (TOML): addresses of the app with words, and what to do there. "
        "`python -m explorer lesson new my-lesson` writes one to fill in and "
        "`python -m explorer lesson check my-lesson.toml` says what is wrong with it; "
        "`docs/how_to/write_a_lesson.md` has an example. Only you see it here, as long as this "
        "server runs; for a class, start the server with `EXPLORER_LESSONS=its/folder`."
    )
    file = st.file_uploader(
        "Lesson", type="toml", key="lesson_file", on_change=_take, max_upload_size=1, width=520
    )
    for note in take_notes("lesson", file.file_id) if file is not None else ():
        st.text(note)


def _take() -> None:
    """For a callback: read the uploaded file."""
    file = widget_state.get("lesson_file")
    if not isinstance(file, Upload):  # the reader removed it, or it does not exist
        return
    try:
        name = f"{lesson_name(file.name.removesuffix(SUFFIX))}{SUFFIX}"
        lesson = lesson_from(file.getvalue(), name, address_parameters.of_pages())
    except LessonError as error:
        keep_note("lesson", str(error), until=file.file_id)
        return
    keep_note("lesson", f"“{lesson.title}” is in the list.", until=file.file_id)
    OWN_LESSONS.add(owner(), lesson, file.size)


@cache
def _picture(name: str) -> str:
    """The picture of a shipped lesson in Base64; empty for a lesson without one."""
    path = PICTURES / f"{name}.webp"
    return b64encode(path.read_bytes()).decode() if path.is_file() else ""


def _row(lesson: Lesson) -> dict[str, object]:
    is_own = lesson.name in OWN_LESSONS.of(owner())
    return {
        "name": lesson.name,
        "title": lesson.title,
        "about": lesson.about,
        "minutes": lesson.minutes,
        "own": is_own,
        "picture": "" if is_own else _picture(lesson.name),
        "steps": [address_at(lesson, at) for at in range(1, len(lesson.steps) + 1)],
    }
