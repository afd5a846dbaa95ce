"""The panel of the open lesson, at the foot of the window on every page.

The address says which lesson is open and at which step. The browser draws the head of the panel
(`explorer.components.lesson`), Streamlit its words, which it never reads as HTML.
"""

import streamlit as st

from explorer.app import address, address_parameters, widget_state
from explorer.app.around_lesson import SentenceAroundLesson
from explorer.app.context import current_context, parts_of
from explorer.app.reader import owner
from explorer.app.reader_store import OWN_LESSONS
from explorer.app.session import state_of
from explorer.catalog.pretrained_models import FIRST
from explorer.components.lesson import lesson_strip
from explorer.components.presenter import mount_presenter
from explorer.lessons.lesson import FIRST_PAGE, Lesson, Predict
from explorer.lessons.lesson_catalog import LessonCatalog, lesson_catalog
from explorer.text.visible_text import literal_sentence
from explorer.views.shared.download_offer import draw_offer

LIST = "lessons"


class Predictions(dict[tuple[str, int], str]):
    """The reader's predictions, by lesson and step."""


def lessons_of_reader() -> LessonCatalog:
    """All lessons that this reader can open."""
    catalog = lesson_catalog(address_parameters.of_pages())
    return LessonCatalog({**catalog.lessons, **OWN_LESSONS.of(owner())}, catalog.faults)


def address_at(lesson: Lesson, at: int, address: str = "") -> str:
    """The address at which a step (from 1) begins, or `address` with that step in the panel."""
    opened = address or lesson.steps[at - 1].begins
    mark = "&" if "?" in opened else "?"
    return f"{base()}{opened}{mark}lesson={lesson.name}&lesson_step={at}"


def base() -> str:
    """The path before the address of every page; empty if the app is at the server's root."""
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def open_step() -> tuple[Lesson | None, int]:
    """The lesson that the address names, and the number of its step, from 1."""
    lesson = lessons_of_reader().lessons.get(name) if (name := address.value_of("lesson")) else None
    at = address.whole_number(address.value_of("lesson_step") or "1") or 1
    return lesson, min(at, len(lesson.steps)) if lesson else at


def draw_lesson() -> None:
    """Draw the step of the lesson that the address names, and the presenter's notes on it."""
    name, (lesson, at) = address.value_of("lesson"), open_step()
    mount_presenter(_notes(lesson, at))
    if not name:
        return
    with st.bottom, st.container(key="lesson_panel"):
        if lesson is None:
            st.text(f"There is no lesson “{name[:40]}” here; the page Lessons lists all of them.")
            st.button("Close", key="leave_lesson", type="tertiary", on_click=_leave)
            return
        step = lesson.steps[at - 1]
        choices = [some for step in lesson.steps for some in (step.choices, step.done)]
        sentences = frozenset(some.get("text", "") for some in choices)
        state_of(SentenceAroundLesson).of_lesson = sentences
        lesson_strip(_data(lesson, at))
        with st.container(key="lesson_words", gap="small"):
            st.markdown(step.text)
            context = current_context()
            if context is not None and step.choices.get("model") == FIRST not in context.models:
                draw_offer(context, "offer_of_lesson")
            if step.predict is not None:
                _draw_predict(lesson.name, at, step.predict)


def _notes(lesson: Lesson | None, at: int) -> list[str]:
    """The lesson, the place, the title and the notes of a step (from 1), and the next title.

    The presenter's second window shows them; they are empty if no lesson is open.
    """
    if lesson is None:
        return [""] * 5
    step = lesson.steps[at - 1]
    following = lesson.steps[at].title if at < len(lesson.steps) else "the end of the lesson"
    return [lesson.title, f"{at} of {len(lesson.steps)}", step.title, step.notes, following]


def _leave() -> None:
    address.remove("lesson")
    address.remove("lesson_step")


def _data(lesson: Lesson, at: int) -> dict[str, object]:
    """What the browser needs to know about the lesson and its open step."""
    step = lesson.steps[at - 1]
    lessons = [*lessons_of_reader().lessons.values()]
    later = lessons[lessons.index(lesson) + 1 :]
    return {
        "name": lesson.name,
        "title": lesson.title,
        "at": at,
        "steps": [
            {"title": step.title, "open": address_at(lesson, place)}
            for place, step in enumerate(lesson.steps, 1)
        ],
        "base": base(),
        "end": f"{base()}/{LIST}",
        "page": step.page,
        "first": FIRST_PAGE,
        "control": step.control,
        "look": step.look,
        "asks": step.predict is not None,
        "done": dict(step.done),
        "shown": address_at(lesson, at, step.ends) if step.ends else "",
        "usual": _usual(),
        "following": {"title": later[0].title, "open": address_at(later[0], 1)} if later else None,
    }


def _usual() -> dict[str, str]:
    """The defaults of the bar, which the address leaves out."""
    context = current_context()
    if context is None or not context.models:
        return {}
    entry = context.entry
    part, layer, head = context.default_head
    title = next(kind.title for kind in parts_of(entry) if kind.name == part)
    return {"text": entry.example, "part": title, "layer": str(layer), "head": str(head)}


@st.fragment
def _draw_predict(name: str, at: int, predict: Predict) -> None:
    """The question, and the answer once the reader has predicted one."""
    guesses, key = state_of(Predictions), f"lesson_guess_{name}_{at}"
    before = guesses.get((name, at))
    default = before if before in predict.options else None  # a file may have changed since
    right = predict.options[predict.right - 1]
    is_known = widget_state.get(key, default) is not None

    def marked(option: str) -> str:
        return f"✓ {option}" if is_known and option == right else option

    guess = st.pills(
        predict.question,
        predict.options,
        default=default,
        key=key,
        required=True,
        format_func=marked,
    )
    if guess is None:
        return
    guesses[name, at] = guess
    named = literal_sentence(right if "“" in right else f"“{right}”")
    begin = "**Right.**" if guess == right else f"**Not quite: it is {named}.**"
    with st.container(key="lesson_answer"):
        st.markdown(f"{begin} {predict.why}")
