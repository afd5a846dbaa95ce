"""Lessons that readers upload: each its own, as many as there is room for."""

from dataclasses import replace

import pytest

from explorer.app.own_lessons import MOST, OwnLessons
from explorer.lessons.lesson import Lesson
from explorer.lessons.lesson_file import lesson_from

STEP = '[[steps]]\ntitle = "a"\nopen = "/masks"\ntext = "b"\n'
LESSON = lesson_from(f'title = "a"\nabout = "b"\nminutes = 1\n{STEP}'.encode(), "a.toml")


def named(name: str) -> Lesson:
    return replace(LESSON, name=name)


def test_a_reader_finds_their_own_and_the_first_leave_where_there_are_many() -> None:
    kept = OwnLessons()
    for at in range(MOST + 2):
        kept.add("me", named(f"lesson-{at}"), 1)
    kept.add("me", named("lesson-2"), 1)
    assert [*kept.of("me")] == [*(f"lesson-{at}" for at in range(3, MOST + 2)), "lesson-2"]
    assert kept.of("you") == {}


def test_those_of_who_opened_theirs_longest_ago_leave_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_OWN_LESSONS_BYTES", "100")
    kept = OwnLessons()
    kept.add("first", LESSON, 60)
    kept.add("second", LESSON, 40)
    assert kept.of("first")
    kept.add("third", LESSON, 40)
    assert [owner for owner in ("first", "second", "third") if kept.of(owner)] == ["first", "third"]
    kept.add("third", LESSON, 200)
    assert [owner for owner in ("first", "second", "third") if kept.of(owner)] == ["third"]
