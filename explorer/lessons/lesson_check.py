"""What is wrong with a lesson that could be read: each fault a sentence with what to do.

The walk in `tests/browser/test_lessons.py` does every step in a real browser; this says at once
what can be said without one.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import urlsplit

from explorer.lessons.lesson import ANY, PAGE, Lesson, LessonStep, is_done
from explorer.lessons.lesson_file import LessonError

Pages = Mapping[str, Collection[str]]
"""The parameters of each page, by the name of the page."""
OF_LESSON = {"lesson", "lesson_step"}
"""The panel writes them."""
DECIMAL = re.compile(r"(?<![\d.])\d[\d,]*\.\d+")
PROVEN = ("text", "predict, question", "predict, why")
"""What the panel says itself: an option may be wrong, and notes are the presenter's own."""
PICTURE = re.compile(r"!\[|<\s*(img|iframe|script|style|link|svg|video|audio|object)\b", re.I)


def checked(lesson: Lesson, pages: Pages) -> Lesson:
    """The lesson. LessonError with the first fault where it has any."""
    for fault in faults(lesson, pages):
        raise LessonError(fault)
    return lesson


def faults(lesson: Lesson, pages: Pages) -> Iterator[str]:
    """Every fault, in the order of the steps."""
    for at, step in enumerate(lesson.steps, 1):
        yield from (f"{lesson.name}.toml, step {at}: {fault}" for fault in _faults(step, pages))


def _faults(step: LessonStep, pages: Pages) -> Iterator[str]:
    yield from _of_address(step, pages)
    yield from _of_task(step, pages)
    yield from _of_words(step)


def _of_address(step: LessonStep, pages: Pages) -> Iterator[str]:
    parts = urlsplit(step.open)
    if parts.scheme or parts.netloc or parts.fragment or not step.open.startswith("/"):
        yield f"`open` must be an address of the app from / on, not “{step.open[:60]}”."
        return
    if step.page not in pages:
        yield f"`open` names no page “{step.page[:40]}”: use one of {', '.join(sorted(pages))}."
        return
    for name in step.choices:
        if name in OF_LESSON:
            yield f"`open` has {name}, which the panel writes: leave it out."
        elif name not in pages[step.page]:
            yield _no_parameter("open", step.page, name)


def _of_task(step: LessonStep, pages: Pages) -> Iterator[str]:
    page = step.done.get(PAGE, step.page)
    if page not in pages:
        if PAGE in step.done:
            yield f"`done` names no page “{page[:40]}”: use one of {', '.join(sorted(pages))}."
        return
    for where, values in (("done", step.done), ("show", step.show)):
        for name in values:
            if name != PAGE and (name in OF_LESSON or name not in pages[page]):
                yield _no_parameter(where, page, name)
    if bool(step.do) != bool(step.done):
        has, misses = ("do", "done") if step.do else ("done", "do")
        yield f"it has `{has}` but no `{misses}`: say both how it is done and what the address has."
    if step.do and not step.control:
        yield "it has `do` but no `control`: name the control that it is done with."
    if step.show and not step.done:
        yield "it has `show` but no `done`: leave `show` out, or say what the address has."
    for name, value in step.done.items():
        if value == ANY and name not in step.show:
            yield f"`done` takes any {name}: give the one that “Show me” takes, in `show`."
    if is_done(step, step.page, step.choices):
        yield "it is done before the reader does anything: let `done` differ from `open`."
    if step.done and not is_done(step, page, dict(step.after)):
        yield "`show` does not do what `done` asks for: make them agree."


def _of_words(step: LessonStep) -> Iterator[str]:
    asked = step.predict
    words = {"text": step.text, "notes": step.notes}
    if asked:
        words |= {"predict, question": asked.question, "predict, why": asked.why}
        words |= {"predict, options": "\n".join(asked.options)}
    for where, text in words.items():
        if found := PICTURE.search(text):
            yield (
                f"`{where}` has {found[0]!r}, and a lesson loads nothing: leave pictures and HTML "
                "out and open the page that shows it."
            )
    seen = " ".join((*step.see, *step.see_first))
    for where in PROVEN:
        for number in dict.fromkeys(DECIMAL.findall(words.get(where, ""))):
            if number not in DECIMAL.findall(seen):
                yield (
                    f"`{where}` says {number}, which nothing proves: add it to `see`, or to "
                    "`see_first` where it stands on the page before anything is done."
                )


def _no_parameter(where: str, page: str, name: str) -> str:
    return (
        f"`{where}` has {name[:40]}, which the page {page} does not read: docs/addresses.md "
        "names what it does."
    )
