"""Presenter mode, as far as the server has to do with it: what the second window says of a step.

All else is in the browser, so that it begins at once: `explorer/components/presenter`.
"""

from __future__ import annotations

from explorer.lessons.lesson import Lesson

PRESENT = "present"
"""In the address, which the browser writes."""


def notes_of(lesson: Lesson | None, at: int) -> list[str]:
    """Of a step, from 1: its lesson, its place in it, title and notes, and the title of the next.

    The second window shows them; they are empty where no lesson is open.
    """
    if lesson is None:
        return [""] * 5
    step = lesson.steps[at - 1]
    following = lesson.steps[at].title if at < len(lesson.steps) else "the end of the lesson"
    return [lesson.title, f"{at} of {len(lesson.steps)}", step.title, step.notes, following]
