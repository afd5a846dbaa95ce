"""Tasks that are made of a text or table which the caller gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from explorer.tasks import characters, reviews, shakespeare
from explorer.tasks.builtin import TASKS
from explorer.tasks.task import Task
from explorer.text import TextError


@dataclass(frozen=True)
class Given:
    """A task without its text; `wants` is "text" or "table" (CSV with the columns text, label)."""

    name: str
    title: str
    explanation: str
    expectation: str
    wants: str
    build: Callable[[str], Task]


GIVEN = {
    module.NAME: Given(
        module.NAME, module.TITLE, module.EXPLANATION, module.EXPECTATION, wants, build
    )
    for module, wants, build in (
        (characters, "text", characters.characters_from_text),
        (shakespeare, "text", shakespeare.shakespeare_from_text),
        (reviews, "table", reviews.from_csv),
    )
}


def task_of(name: str, text: str | None = None) -> Task:
    """The task of this name, made of `text` where it needs one. TextError says what is wrong."""
    if name in TASKS:
        return TASKS[name]
    if name not in GIVEN:
        names = ", ".join([*TASKS, *GIVEN])
        raise TextError(f"There is no task called {name[:60]!r}; there are {names}.")
    if text is None:
        raise TextError(f"The task {name} is made of a text, and none was given.")
    return _built(name, text)


@lru_cache(maxsize=4)
def _built(name: str, text: str) -> Task:
    return GIVEN[name].build(text)
