"""A kept session as a lesson: whatever was typed, the reader of lessons takes it."""

from hypothesis import given
from hypothesis import strategies as st

from explorer.app import address_parameters
from explorer.export.kept_view import KeptView
from explorer.export.session_lesson import lesson_name, session_toml
from explorer.export.session_page import session_html
from explorer.lessons.lesson import Lesson
from explorer.lessons.lesson_file import lesson_from

ANYTHING = st.text(max_size=60)
HARMFUL = '![x](https://elsewhere.example/x.png) <img src=x> `"""\\\x7f 0.5 $x$\n[[steps]]'


def read(title: str, views: list[KeptView]) -> Lesson:
    named = KeptView(title, "/").called(title, "").title
    file = session_toml(named, views)
    return lesson_from(file, f"{lesson_name(named)}.toml", address_parameters.of_pages())


def test_a_session_is_a_lesson_without_tasks() -> None:
    chosen = {"model": "m", "sentence": "p 0.5"}
    first_view = KeptView("First", "/attention?layer=1", "Say this.", chosen)
    views = [first_view, KeptView("Second", "/")]
    lesson = read("My talk", views)
    assert (lesson.name, lesson.title, len(lesson.steps)) == ("my-talk", "My talk", 2)
    first, second = lesson.steps
    assert (first.open, first.text, first.done) == ("/attention?layer=1", "", {})
    assert first.notes == "Say this.\n\nmodel: m · sentence: p 0.5"
    assert (second.open, second.text, second.notes) == ("/", "", "")


def test_what_a_view_comes_from_is_one_line_however_long_its_sentence_is() -> None:
    about = {"model": "m", "sentence": "long\n" * 200 + "end", "attention": "Cross", "head": "1"}
    text = read("Talk", [KeptView("", "/", about=about).called("One", "")]).steps[0].notes
    assert ("\n" in text, "…" in text) == (False, True)
    assert len(text) < 120
    assert text.endswith("end · attention: Cross · head: 1")


@given(*[ANYTHING | st.just("a\ud800\x1b")] * 2, ANYTHING)
def test_whatever_was_typed(title: str, note: str, sentence: str) -> None:
    view = KeptView("", "/attention", "", {"sentence": sentence}).called(title, note)
    assert read(title, [view]).steps[0].title == view.title
    assert session_html(view.title, [view])


def test_nothing_becomes_a_picture_or_a_step() -> None:
    view = KeptView("", "/attention", "", {"sentence": HARMFUL}).called(HARMFUL, HARMFUL)
    assert len(read(HARMFUL, [view]).steps) == 1
