"""A lesson as plain data: steps that each open an address, say what stands there, and ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

FIRST_PAGE = "overview"
"""The page at the root."""
PAGE, ANY, ABSENT = "page", "*", ""
"""In `done`: the name of the page; any value of a parameter; a parameter that is not there."""


@dataclass(frozen=True)
class Predict:
    """Asked before the reader may look: `right` is the place of the right option, from 1."""

    question: str
    options: tuple[str, ...]
    right: int
    why: str


@dataclass(frozen=True)
class LessonStep:
    """One address with its words, and what the reader does there.

    `do` says how, as the keys of `lesson_file.WAYS`; `done` is what the address then has, and
    `show` what it has when the app does it for the reader. Without `done` a step is read.
    """

    title: str
    open: str
    text: str
    notes: str = ""
    control: str = ""
    do: Mapping[str, object] = field(default_factory=dict)
    done: Mapping[str, str] = field(default_factory=dict)
    show: Mapping[str, str] = field(default_factory=dict)
    see: tuple[str, ...] = ()
    see_first: tuple[str, ...] = ()
    predict: Predict | None = None

    @property
    def page(self) -> str:
        """The page that the step opens."""
        return urlsplit(self.open).path.strip("/") or FIRST_PAGE

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The parameters of the address that the step opens; a list repeats its name."""
        return parse_qsl(urlsplit(self.open).query, keep_blank_values=True)

    @property
    def choices(self) -> dict[str, str]:
        """The same by their names; of a list the first, as a browser has it."""
        return dict(reversed(self.pairs))

    @property
    def after(self) -> list[tuple[str, str]]:
        """The parameters after the app has done it for the reader."""
        wanted = {**self.done, **self.show}
        wanted.pop(PAGE, None)
        kept = [(name, value) for name, value in self.pairs if name not in wanted]
        return [*kept, *((name, value) for name, value in wanted.items() if value)]

    @property
    def begins(self) -> str:
        """The address that the step opens, as all addresses are written."""
        return address_of(self.page, self.pairs)

    @property
    def shown(self) -> str:
        """The address after the app has done it; empty where nothing is to be done."""
        return address_of(self.done.get(PAGE, self.page), self.after) if self.done else ""


@dataclass(frozen=True)
class Lesson:
    """A lesson by the name of its file, which is its name in an address."""

    name: str
    title: str
    about: str
    minutes: int
    steps: tuple[LessonStep, ...]


def address_of(page: str, pairs: Sequence[tuple[str, str]]) -> str:
    """The address of a page with these parameters, from the app's own root."""
    query = urlencode(pairs)
    return f"/{'' if page == FIRST_PAGE else page}{'?' if query else ''}{query}"


def is_done(
    step: LessonStep, page: str, choices: Mapping[str, str], usual: Mapping[str, str] | None = None
) -> bool:
    """Whether an address is that of the step when it is done; never for one that is only read.

    `usual` is what the bar has where the address does not say it. The panel knows it, in the
    browser, where `isDone` of strip.js says the same; who checks a file opens no model.
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
