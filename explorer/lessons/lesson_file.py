"""Reads a lesson from TOML that anybody may have written: every field is bounded and checked.

Each fault is one sentence that names the file, the step and what to do. `lesson_from` reports why
a file is no lesson; `faults` finds the faults of a lesson that could be read, without a browser.
`tests/views/test_lesson_steps.py` opens every step of the lessons that come with the app, and
`tests/browser/test_lessons.py` does some of them in a real browser.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from explorer.lessons.lesson import ANY, PAGE, Lesson, LessonStep, Predict, is_done
from explorer.system.limits import LESSON_BYTES

MOST_STEPS, MOST_MINUTES = 40, 240
MOST_TEXTS, MOST_KEYS = 20, 50
"""The most entries of `see`, and of `press`."""
MOST_CELL = 4_096
SHORT, LINE, LONG, ADDRESS = 80, 300, 2_000, 20_000
"""Characters of a title, a sentence, a text, an address (where a letter may take nine)."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
CONTROL = re.compile(r"[A-Za-z0-9_-]{1,80}")
PARAMETER = re.compile(r"[a-z_]{1,40}")
SUFFIX = ".toml"
QUOTED = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"{3,5}|\\?\Z)|"(?:\\.|[^"\\\n])*"?'''
    r"""|'{3}.*?(?:'{3,5}|\Z)|'[^'\n]*'?|\#[^\n]*""",
    re.DOTALL,
)
"""A TOML string or a comment, complete or not; matched in linear time."""
BETWEEN = re.compile(r"[=,{}\[\]\n]")
MOST_DOTS = 3
"""In one key: tomllib's memory grows with their square, to 258 MB for a key of 16,000 bytes."""

Pages = Mapping[str, Collection[str]]
"""The parameters of each page, by the name of the page."""
WRITTEN_BY_PANEL = {"lesson", "lesson_step"}
"""Parameters that the panel writes."""
DECIMAL = re.compile(r"(?<![\d.])\d[\d,]*\.\d+")
PROVEN = ("text", "predict, question", "predict, why")
"""Texts whose numbers must be proven; an option may be wrong, and notes are the presenter's own."""
PICTURE = re.compile(r"!\[|<\s*(img|iframe|script|style|link|svg|video|audio|object)\b", re.I)
CANNOT_BE_READ = "{file}: cannot be read; is it there, and yours to read?"


class LessonError(ValueError):
    """Why this is no lesson, in one sentence, in visible characters."""

    def __init__(self, sentence: str) -> None:
        from models.file_text import visible  # a component does without torch

        super().__init__(visible(sentence))


def name_of(file: str) -> str:
    """The name of a lesson from its file name. LessonError where an address cannot have it."""
    name = file.removesuffix(SUFFIX)
    if not NAME.fullmatch(name) or name == file:
        raise LessonError(
            f"{file[:60]}: name the file in small letters, digits, _ and -, 60 at most, and let "
            f"it end in {SUFFIX}."
        )
    return name


def read_file(path: Path, pages: Pages | None = None) -> Lesson:
    """The lesson of a file; LessonError says why the file is none."""
    try:
        if not path.is_file():  # opening a pipe can block for ever
            raise FileNotFoundError
        with path.open("rb") as file:
            data = file.read(LESSON_BYTES.most + 1)
    except OSError as error:
        raise LessonError(CANNOT_BE_READ.format(file=path.name)) from error
    return lesson_from(data, path.name, pages)


def lesson_from(data: bytes, file: str, pages: Pages | None = None) -> Lesson:
    """The lesson in the bytes of a file; with `pages`, only a lesson without faults.

    LessonError says why there is none.
    """
    name = name_of(file)
    if not LESSON_BYTES.allows(len(data)):
        raise LessonError(f"{file}: {LESSON_BYTES.refusal(len(data))}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LessonError(f"{file}: save it as UTF-8, which it is not.") from error
    fields = _Fields(_table_in(text, file), file, "title", "about", "minutes", "steps")
    minutes = fields.number("minutes", 1, MOST_MINUTES)
    title, about = fields.text("title", SHORT), fields.text("about", LINE)
    tables = fields.tables("steps", MOST_STEPS)
    fields.no_others()
    steps = tuple(_step(table, f"{file}, step {at}") for at, table in enumerate(tables, 1))
    lesson = Lesson(name, title, about, minutes, steps)
    if pages is not None:
        for fault in faults(lesson, pages):
            raise LessonError(fault)
    return lesson


def _table_in(text: str, file: str) -> dict[str, Any]:
    """The table that this TOML is, in visible characters; LessonError says why it is none."""
    from models.file_text import visible_values  # as above

    for key in BETWEEN.split(QUOTED.sub("_", text)):  # before it is parsed
        if key.count(".") > MOST_DOTS:
            raise LessonError(
                f"{file}: {key.strip()[:40]!r} has more than {MOST_DOTS} dots: put a text between "
                "quotes, and shorten a key."
            )
    try:
        table: dict[str, Any] = visible_values(tomllib.loads(text))
        return table
    except tomllib.TOMLDecodeError as error:
        why = str(error)
    except ValueError:
        why = "a number in it has too many digits"
    except RecursionError:
        why = "it is nested too deep"
    raise LessonError(f"{file}: the file is not valid TOML ({why}); correct it there.")


def _step(table: Mapping[str, Any], where: str) -> LessonStep:
    of = _Fields(table, where, "title", "open", "text")
    keys: dict[str, Any] = {key: of.text(key, SHORT, needed=False) for key in ("control", "look")}
    for name in [name for name, key in keys.items() if key and not CONTROL.fullmatch(key)]:
        raise of.wrong(name, "must be the key of a control: letters, digits, _ and -")
    step = LessonStep(
        title=of.text("title", SHORT),
        open=of.text("open", ADDRESS),
        text=of.text("text", LONG, needed=False),
        notes=of.text("notes", LONG, needed=False),
        **keys,
        do=_do(of),
        done=of.parameters("done"),
        show=of.parameters("show"),
        see=_proofs(of, "see"),
        see_first=_proofs(of, "see_first"),
        predict=_predict(of),
    )
    of.no_others()
    return step


def _proofs(of: "_Fields", name: str) -> tuple[str, ...]:
    texts = of.texts(name, 0, MOST_TEXTS)
    for text in texts:
        if len(text.strip()) < 2:
            raise of.wrong(name, f"has “{text}” alone, which stands on any page; give more of it")
    return texts


def _predict(of: "_Fields") -> Predict | None:
    table = of.value("predict")
    if table is None:
        return None
    if not isinstance(table, dict):
        raise of.wrong("predict", "must be a table: [steps.predict]")
    inside = _Fields(table, f"{of.where}, predict", "question", "options", "right", "why")
    options = inside.texts("options", 2, 6)
    right = inside.number("right", 1, len(options))
    if len({*options}) < len(options):
        raise inside.wrong("options", "has one twice; let each be another")
    predict = Predict(inside.text("question", LINE), options, right, inside.text("why", LONG))
    inside.no_others()
    return predict


def _do(of: "_Fields") -> Mapping[str, object]:
    """How the reader does the task: one of WAYS."""
    table = of.value("do")
    if table is None:
        return {}
    ways = ", ".join(WAYS)
    if not isinstance(table, dict) or len(table) != 1 or not table.keys() <= WAYS.keys():
        raise of.wrong("do", f'must be one of {ways}, such as {{choose = "1"}}')
    ((way, value),) = table.items()
    is_right, needs = WAYS[way]
    if not is_right(value):
        raise of.wrong("do", f"needs {needs} for {way}")
    return {way: value}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONG


def _are_keys(value: object) -> bool:
    return isinstance(value, list) and 0 < len(value) <= MOST_KEYS and all(map(_is_text, value))


def _is_cell(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(number) is int and 0 <= number < MOST_CELL for number in value)
    )


WAYS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "choose": (_is_text, "the words of an option"),
    "type": (_is_text, "the text that is typed"),
    "press": (_are_keys, 'a list of keys, such as ["ArrowRight"]'),
    "click": (lambda value: value is True, "the word true"),
    "cell": (_is_cell, "a row and a column from 0, such as [4, 2]"),
}
"""A reader picks an option of a control, types and presses Enter, presses keys while it has the
focus, clicks it, or clicks a cell of a matrix. Each way has a check of its value."""


class _Fields:
    """One table of the file, with all `needed` fields and no other than those that are read."""

    def __init__(self, table: Mapping[str, Any], where: str, *needed: str) -> None:
        self.table, self.where = table, where
        self._known = set[str]()
        if missing := [f"“{name}”" for name in needed if name not in table]:
            are = "is missing; add it" if len(missing) == 1 else "are missing; add them"
            raise LessonError(f"{where}: {', '.join(missing)} {are}.")

    def wrong(self, name: str, what: str) -> LessonError:
        return LessonError(f"{self.where}: “{name}” {what}.")

    def value(self, name: str, otherwise: Any = None) -> Any:
        """The value without a check."""
        self._known.add(name)
        return self.table.get(name, otherwise)

    def text(self, name: str, most: int, *, needed: bool = True) -> str:
        value = self.value(name, "")
        if not isinstance(value, str):
            raise self.wrong(name, "must be a text between quotes")
        value = value.strip()
        if needed and not value:
            raise self.wrong(name, "is empty; write something")
        if len(value) > most:
            raise self.wrong(name, f"has {len(value):,} characters; shorten it to {most:,}")
        if name not in ("text", "why", "notes") and not value.isprintable():
            raise self.wrong(name, "must be one line without invisible characters")
        return value

    def number(self, name: str, least: int, most: int) -> int:
        value = self.value(name, 0)
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(name, f"must be a whole number from {least} to {most}")
        return value

    def texts(self, name: str, least: int, most: int) -> tuple[str, ...]:
        value = self.value(name, [])
        is_one = isinstance(value, list) and all(
            isinstance(text, str) and 0 < len(text) <= LINE for text in value
        )
        if not is_one or not least <= len(value) <= most:
            size = f"{least} to {most}" if least else f"at most {most}"
            raise self.wrong(name, f"must be a list of {size} texts, none over {LINE} characters")
        return tuple(value)

    def parameters(self, name: str) -> dict[str, str]:
        value = self.value(name, {})
        is_one = (
            isinstance(value, dict)
            and len(value) <= MOST_TEXTS
            and all(
                PARAMETER.fullmatch(key) and isinstance(text, str) and len(text) <= LONG
                for key, text in value.items()
            )
        )
        if not is_one:
            raise self.wrong(name, 'must be parameters of an address with texts: {layer = "1"}')
        return dict(value)

    def tables(self, name: str, most: int) -> list[Mapping[str, Any]]:
        value = self.value(name, [])
        if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
            raise self.wrong(name, f"must be tables, each under [[{name}]]")
        if not 0 < len(value) <= most:
            raise self.wrong(name, f"are {len(value)}; a lesson has 1 to {most}")
        return value

    def no_others(self) -> None:
        if stray := sorted(self.table.keys() - self._known):
            names = ", ".join(sorted(self._known))
            raise LessonError(
                f"{self.where}: nothing is called “{stray[0][:40]}”; there is {names}."
            )


# ---- what is wrong with a lesson that could be read --------------------------------------------


def faults(lesson: Lesson, pages: Pages) -> Iterator[str]:
    """Every fault, in the order of the steps."""
    for at, step in enumerate(lesson.steps, 1):
        yield from (f"{lesson.name}.toml, step {at}: {fault}" for fault in _faults(step, pages))


def _faults(step: LessonStep, pages: Pages) -> Iterator[str]:
    if not step.open.startswith("/") or step.open.startswith("//") or "#" in step.open:
        yield f"“open” must be an address of the app from / on, not “{step.open[:60]}”."
        return
    yield from _of_address(step, pages)
    yield from _of_task(step, pages)
    yield from _of_words(step)


def _of_address(step: LessonStep, pages: Pages) -> Iterator[str]:
    if step.page not in pages:
        yield f"“open” names no page “{step.page[:40]}”: use one of {', '.join(sorted(pages))}."
        return
    for name in step.choices:
        if name in WRITTEN_BY_PANEL:
            yield f"“open” has {name}, which the panel writes: leave it out."
        elif name not in pages[step.page]:
            yield _no_parameter("open", step.page, name)


def _of_task(step: LessonStep, pages: Pages) -> Iterator[str]:
    page = step.done.get(PAGE, step.page)
    if page not in pages:
        if PAGE in step.done:
            yield f"“done” names no page “{page[:40]}”: use one of {', '.join(sorted(pages))}."
        return
    for where, values in (("done", step.done), ("show", step.show)):
        for name in values:
            if name != PAGE and (name in WRITTEN_BY_PANEL or name not in pages[page]):
                yield _no_parameter(where, page, name)
    if bool(step.do) != bool(step.done):
        has, misses = ("do", "done") if step.do else ("done", "do")
        yield f"it has “{has}” but no “{misses}”: say both how it is done and what the address has."
    if step.do and not step.control:
        yield "it has “do” but no “control”: name the control that it is done with."
    if step.show and not step.done:
        yield "it has “show” but no “done”: leave “show” out, or say what the address has."
    for name, value in step.done.items():
        if value == ANY and name not in step.show:
            yield f"“done” takes any {name}: give the one that “Show me” takes, in “show”."
    if is_done(step, step.page, step.choices):
        yield "it is done before the reader does anything: let “done” differ from “open”."
    if step.done and not is_done(step, page, dict(step.after)):
        yield "“show” does not do what “done” asks for: make them agree."


def _of_words(step: LessonStep) -> Iterator[str]:
    predict = step.predict
    words = {"text": step.text, "notes": step.notes}
    if predict:
        words |= {"predict, question": predict.question, "predict, why": predict.why}
        words |= {"predict, options": "\n".join(predict.options)}
    for where, text in words.items():
        if picture := PICTURE.search(text):
            yield (
                f"“{where}” has {picture[0]!r}, and a lesson loads nothing: leave pictures and "
                "HTML out and open the page that shows it."
            )
    proven = DECIMAL.findall(" ".join((*step.see, *step.see_first)))
    for where in PROVEN:
        for number in dict.fromkeys(DECIMAL.findall(words.get(where, ""))):
            if number not in proven:
                yield (
                    f"“{where}” says {number}, which nothing proves: add it to “see”, or to "
                    "“see_first” where it stands on the page before anything is done."
                )


def _no_parameter(where: str, page: str, name: str) -> str:
    return (
        f"“{where}” has {name[:40]}, which the page {page} does not read: docs/addresses.md "
        "names what it does."
    )
