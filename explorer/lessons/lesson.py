"""A lesson as plain data: each step opens an address, explains it, and asks for one thing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

FIRST_PAGE = "overview"
"""The page at the root."""
PAGE, ANY, ABSENT = "page", "*", ""
"""In `done`: the key of the page's name; any value of a parameter; no such parameter."""


@dataclass(frozen=True)
class Predict:
    """A question before the answer is shown; `right` is the number of the right option, from 1."""

    question: str
    options: tuple[str, ...]
    right: int
    why: str


@dataclass(frozen=True)
class LessonStep:
    """One address with its text, and the task of the reader there.

    `control` is what the task is done with, `look` the view that then shows its result.
    `do` has one of `lesson_file.WAYS`; `done` has the parameters of the address after the task, and
    `show` the values that the app sets when it does the task. A step without `done` has no task.
    """

    title: str
    open: str
    text: str
    notes: str = ""
    control: str = ""
    look: str = ""
    do: Mapping[str, object] = field(default_factory=dict)
    done: Mapping[str, str] = field(default_factory=dict)
    show: Mapping[str, str] = field(default_factory=dict)
    see: tuple[str, ...] = ()
    see_first: tuple[str, ...] = ()
    predict: Predict | None = None

    @property
    def page(self) -> str:
        return urlsplit(self.open).path.strip("/") or FIRST_PAGE

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The parameters of the address that the step opens; a list repeats its name."""
        return parse_qsl(urlsplit(self.open).query, keep_blank_values=True)

    @property
    def choices(self) -> dict[str, str]:
        """The parameters by name; of a list the first, as in a browser."""
        return dict(reversed(self.pairs))

    @property
    def after(self) -> list[tuple[str, str]]:
        """The parameters after the app has done the task for the reader."""
        changes = {**self.done, **self.show}
        changes.pop(PAGE, None)
        unchanged = [(name, value) for name, value in self.pairs if name not in changes]
        return [*unchanged, *((name, value) for name, value in changes.items() if value)]

    @property
    def begins(self) -> str:
        """The address that the step opens, in the usual form."""
        return address_of(self.page, self.pairs)

    @property
    def ends(self) -> str:
        """The address after the app has done the task; empty without a task."""
        return address_of(self.done.get(PAGE, self.page), self.after) if self.done else ""


@dataclass(frozen=True)
class Lesson:
    """A lesson; its name is that of its file, and it is used in addresses."""

    name: str
    title: str
    about: str
    minutes: int
    steps: tuple[LessonStep, ...]


def address_of(page: str, pairs: Sequence[tuple[str, str]]) -> str:
    """The address of a page with these parameters, relative to the app's root."""
    query = urlencode(pairs)
    return f"/{'' if page == FIRST_PAGE else page}{'?' if query else ''}{query}"


def is_done(
    step: LessonStep, page: str, choices: Mapping[str, str], usual: Mapping[str, str] | None = None
) -> bool:
    """Whether this address means that the step's task is done; false for a step without a task.

    `usual` has the values of parameters that the address omits. The panel knows them in the
    browser, where `isDone` of strip.js computes the same; checking a file opens no model.
    """
    if not step.done or page != step.done.get(PAGE, step.page):
        return False
    return all(
        bool(choices.get(name))
        if value == ANY
        else choices.get(name, ABSENT) == value or {**(usual or {}), **choices}.get(name) == value
        for name, value in step.done.items()
        if name != PAGE
    )
