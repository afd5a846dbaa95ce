"""A lesson is read from TOML as it stands there; what is wrong is one sentence with its place."""

import os
import re
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.app import address_parameters
from explorer.commands.lesson_commands import TEMPLATE
from explorer.lessons.lesson import Lesson, LessonStep, is_done
from explorer.lessons.lesson_catalog import FILES, FOLDER, TAUGHT, lesson_catalog
from explorer.lessons.lesson_file import LessonError, faults, lesson_from, read_file
from tests.source import ROOT
from tests.whole_numbers import stands_in

TOP = {"title": '"A lesson"', "about": '"What one learns."', "minutes": "4"}
STEP = {"title": '"Masks"', "open": '"/masks?layer=1"', "text": '"Look."'}
TASK = {"control": '"layer"', "do": '{choose = "2"}', "done": '{layer = "2"}'}
PREDICT = {"question": '"Which?"', "options": '["a", "b"]', "right": "2", "why": '"So."'}
PAGES = address_parameters.of_pages()


Fields = dict[str, str]


def toml(top: dict[str, str], *tables: tuple[str, dict[str, str]]) -> bytes:
    lines = [f"{name} = {value}" for name, value in top.items()]
    for name, table in tables:
        lines += [name, *(f"{key} = {value}" for key, value in table.items())]
    return "\n".join(lines).encode()


def made(step: Fields, predict: Fields | None = None, top: Fields = TOP) -> Lesson:
    tables = [("[[steps]]", STEP | step)]
    if predict is not None:
        tables.append(("[steps.predict]", PREDICT | predict))
    return lesson_from(toml(top, *tables), "own.toml")


def test_a_lesson_is_what_its_file_says() -> None:
    lesson = made(TASK | {"see": '["0.5"]', "notes": '"Wait."'}, {})
    (step,) = lesson.steps
    assert (lesson.name, lesson.minutes) == ("own", 4)
    assert (step.page, step.choices) == ("masks", {"layer": "1"})
    assert step.predict is not None
    assert (step.predict.right, step.predict.options, step.notes) == (2, ("a", "b"), "Wait.")
    assert step.ends == "/masks?layer=2"
    assert [*faults(lesson, PAGES)] == []


def test_a_step_is_done_when_the_address_says_so() -> None:
    done = {"layer": "2", "pinned": "*", "hide": ""}
    step = LessonStep("t", "/attention?layer=1&hide=2", "x", done=done)
    assert is_done(step, "attention", {"layer": "2", "pinned": "q1k1", "head": "3"})
    assert not is_done(step, "attention", {"layer": "2"})
    assert not is_done(step, "masks", {"layer": "2", "pinned": "q1k1"})
    assert not is_done(step, "attention", {"layer": "2", "pinned": "q1k1", "hide": "2"})
    assert is_done(LessonStep("t", "/", "x", done={"page": "masks"}), "masks", {})
    assert not is_done(LessonStep("t", "/", "x"), "overview", {})


NO_LESSONS: list[tuple[Fields, Fields, Fields | None, str]] = [
    ({"title": "3"}, {}, None, "own.toml: “title” must be a text"),
    ({"title": '""'}, {}, None, "own.toml: “title” is empty"),
    ({"title": f'"{"a" * 81}"'}, {}, None, "has 81 characters; shorten it to 80"),
    ({"title": r'"a\nb"'}, {}, None, "one line without invisible"),
    ({"minutes": "1" * 5_000}, {}, None, "own.toml: the file is not valid TOML (a number in"),
    ({r'"\u001b[31m\u009b"': "1"}, {}, None, "is called “<U+001B>[31m<U+009B>”; there"),
    ({"minutes": "0"}, {}, None, "a whole number from 1 to 240"),
    ({"minutes": "true"}, {}, None, "a whole number from 1 to 240"),
    ({"minuets": "3"}, {}, None, "own.toml: nothing is called “minuets”"),
    ({}, {"opens": '"/"'}, None, "own.toml, step 1: nothing is called “opens”"),
    ({}, {"text": f'"{"a" * 2001}"'}, None, "step 1: “text” has 2,001 characters"),
    ({}, {"control": '"a b"'}, None, "step 1: “control” must be the key"),
    ({}, {"do": "3"}, None, "step 1: “do” must be one of choose, type, press"),
    ({}, {"do": '{drag = "a"}'}, None, "step 1: “do” must be one of"),
    ({}, {"do": '{choose = "a", click = true}'}, None, "step 1: “do” must be one of"),
    ({}, {"do": "{click = 1}"}, None, "step 1: “do” needs the word true for click"),
    ({}, {"do": "{press = []}"}, None, "step 1: “do” needs a list of keys"),
    ({}, {"do": "{cell = [1, -1]}"}, None, "step 1: “do” needs a row and a column"),
    ({}, {"done": "{layer = 2}"}, None, "step 1: “done” must be parameters"),
    ({}, {"see": '"0.5"'}, None, "step 1: “see” must be a list of at most 20 texts"),
    ({}, {}, {"right": "3"}, "step 1, predict: “right” must be a whole number from 1 to 2"),
    ({}, {}, {"options": '["a"]'}, "step 1, predict: “options” must be a list of 2 to 6"),
    ({}, {}, {"options": '["a", "b", "a"]'}, "step 1, predict: “options” has one twice"),
    ({}, {"see": '["t"]'}, None, "step 1: “see” has “t” alone"),
    ({}, {"see_first": '[" "]'}, None, "step 1: “see_first” has “ ” alone"),
    ({}, {}, {"hint": '"a"'}, "step 1, predict: nothing is called “hint”"),
]


def test_what_is_no_lesson_is_refused(subtests: pytest.Subtests) -> None:
    for top, step, predict, said in NO_LESSONS:
        one_line = rf"^[^\n]*{re.escape(said)}[^\n]*\Z"
        with subtests.test(said), pytest.raises(LessonError, match=one_line):
            made(step, predict, TOP | top)


def test_what_is_no_file_of_a_lesson_is_refused() -> None:
    for data, said in (
        (b"\xff", "save it as UTF-8"),
        (b"title = ", "the file is not valid TOML"),
        (b"a = " + b"[" * 5_000, "the file is not valid TOML"),
        (toml(TOP), "“steps” is missing; add it."),
        (toml(TOP | {"steps": "[]"}), "“steps” are 0; a lesson has 1 to 40"),
        (toml(TOP | {"steps": "3"}), "“steps” must be tables"),
        (toml(TOP, *[("[[steps]]", STEP)] * 41), "“steps” are 41"),
        (toml(TOP, ("[[steps]]", {"title": '"a"'})), "step 1: “open”, “text” are missing; add"),
        (toml(TOP, ("[[steps]]", STEP | {"predict": "3"})), "“predict” must be a table"),
    ):
        with pytest.raises(LessonError, match=r"^own\.toml") as refused:
            lesson_from(data, "own.toml")
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)


LONG_KEY = "a." * 8_000 + "a"
QUOTED_KEY = r'"\\"".' * 4_000 + "a"


LONG_KEYS = [
    f"{LONG_KEY} = 1",
    f"[{LONG_KEY}]",
    f"[[{LONG_KEY}]]",
    f"a = {{b = 1, {LONG_KEY} = 1}}",
    LONG_KEY.replace(".", "\t. "),
    f"{QUOTED_KEY} = 1",
    "''." * 5_000 + "a = 1",
    f'a = ["""b"""", {{{LONG_KEY} = 1}}]',
    f'a = """b"""""\n{LONG_KEY} = 1',
    f"a = '''b'''''\n{LONG_KEY} = 1",
    f"# it's\n{LONG_KEY} = 1",
    f'a = "\n{LONG_KEY} = 1',
]


def test_a_key_of_many_parts_is_never_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tomllib.loads", None)
    for text in LONG_KEYS:
        with pytest.raises(LessonError, match=r"^own\.toml: .* has more than 3 dots: put a text"):
            lesson_from(text.encode(), "own.toml")


def test_dots_in_texts_and_comments_are_no_key() -> None:
    dots = "a.b.c.d.e.f ....... "
    step = {"text": f"'''{dots}\n{dots}'''", "notes": f'"""{dots}\\" {dots}\n{dots}""""'}
    assert made(step | {"see": f"['{dots}', \"{dots}\"]  # {dots}"}).steps


ENDLESS = (*(each * 45_000 for each in ('"\\', '"', "'", "a")), '"""' + '\\"""\n' * 18_000 + "\\")


def test_texts_that_never_end_are_found_in_linear_time() -> None:
    for text in ENDLESS:
        with pytest.raises(LessonError, match="the file is not valid TOML"):
            lesson_from(text.encode(), "own.toml")


def test_a_name_that_no_address_can_have_and_a_missing_file_are_said(tmp_path: Path) -> None:
    for file in ("Own.toml", "own.txt", "a b.toml", ".toml", "../own.toml"):
        with pytest.raises(LessonError, match="name the file in small letters"):
            lesson_from(toml(TOP, ("[[steps]]", STEP)), file)
    with pytest.raises(LessonError, match=r"^gone\.toml: cannot be read"):
        read_file(tmp_path / "gone.toml")


FAULTS: list[tuple[Fields, Fields | None, str]] = [
    ({"open": '"https://example.org/masks"'}, None, "“open” must be an address of the app"),
    ({"open": '"//example.org/masks"'}, None, "“open” must be an address of the app"),
    ({"open": '"masks"'}, None, "“open” must be an address of the app"),
    ({"open": '"//[a"'}, None, "“open” must be an address of the app"),
    ({"open": '"/mask"'}, None, "“open” names no page “mask”"),
    ({"open": '"/masks?metric=a"'}, None, "“open” has metric, which the page masks"),
    ({"open": '"/masks?lesson=a"'}, None, "“open” has lesson, which the panel writes"),
    (TASK | {"done": '{page = "no"}'}, None, "“done” names no page “no”"),
    (TASK | {"done": '{metric = "a"}'}, None, "“done” has metric, which the page masks"),
    (TASK | {"done": '{layer = "1"}'}, None, "it is done before the reader does anything"),
    (TASK | {"done": '{head = "*"}'}, None, "“done” takes any head: give the one"),
    (TASK | {"show": '{layer = "3"}'}, None, "“show” does not do what “done” asks for"),
    ({"do": "{click = true}", "control": '"a"'}, None, "it has “do” but no “done”"),
    ({"done": '{layer = "2"}'}, None, "it has “done” but no “do”"),
    ({"show": '{layer = "2"}'}, None, "it has “show” but no “done”"),
    (TASK | {"control": '""'}, None, "it has “do” but no “control”"),
    ({"text": '"It is 0.25."'}, None, "“text” says 0.25, which nothing proves"),
    ({"text": '"It is 0.25."', "see": '["10.25"]'}, None, "“text” says 0.25"),
    ({}, {"why": '"It is 0.25."'}, "“predict, why” says 0.25"),
    ({}, {"question": '"Is it 0.25?"'}, "“predict, question” says 0.25"),
    ({"text": '"![a](https://example.org/a.png)"'}, None, "a lesson loads nothing"),
    ({"text": "'<img src=\"a\">'"}, None, "a lesson loads nothing"),
]


def test_a_lessons_faults() -> None:
    for step, predict, said in FAULTS:
        found = [*faults(made(step, predict), PAGES)]
        assert any(said in each for each in found), (said, found)
        assert all(each.startswith("own.toml, step 1: ") for each in found)


def test_what_is_proven_or_needs_no_proof_is_no_fault(tmp_path: Path) -> None:
    """Numbers that stand on the page, wrong options, notes, and the template of a new lesson."""
    step = {"text": '"It was 0.25 and is 1,024.5."', "see": '["is 1,024.5"]'}
    assert [*faults(made(step | {"see_first": '["0.25"]'}), PAGES)] == []
    options = {"options": '["0.25", "0.75"]'}
    assert [*faults(made({"notes": '"Section 3.2."'}, options), PAGES)] == []
    path = tmp_path / "new.toml"
    path.write_bytes(TEMPLATE.read_bytes())
    assert [*faults(read_file(path), PAGES)] == []


def test_the_example_in_the_documentation_has_no_fault() -> None:
    page = (ROOT / "docs" / "how_to" / "write_a_lesson.md").read_text("utf-8")
    _, example, *_ = re.split(r"```toml\n|\n```", page[page.index("```toml") :])
    assert [*faults(lesson_from(example.encode(), "example.toml"), PAGES)] == []
    fields = set(re.findall(r"`(\w+)`", page[page.index("| Field |") :]))
    assert {"open", *LessonStep.__dataclass_fields__} - {"title"} <= fields


def test_the_lessons_that_ship_have_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    found = lesson_catalog(PAGES)
    assert found.faults == ()
    assert (*found.lessons,) == TAUGHT
    assert {*found.lessons} == {path.stem for path in FILES.glob("*.toml")}


def test_a_folder_of_ones_own_is_read_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert main(["lesson", "new", "mine", "--to", str(tmp_path)]) == 0
    assert main(["lesson", "new", "mine", "--to", str(tmp_path)]) == 2
    assert main(["lesson", "new", "My own", "--to", str(tmp_path)]) == 2
    path = tmp_path / "mine.toml"
    os.mkfifo(tmp_path / "pipe.toml")  # nobody waits for it
    assert main(["lesson", "check", str(path)]) == 0
    for name, text in (("digits", f"minutes = {'1' * 5_000}"), ("keys", '"\\u001b[31m" = 1')):
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
        assert main(["lesson", "check", str(tmp_path / f"{name}.toml")]) == 2
    assert [*lesson_catalog(PAGES).lessons] == [*TAUGHT, "mine"]
    assert "\x1b" not in capsys.readouterr().out
    path.write_text(path.read_text("utf-8").replace("/attention?", "/nowhere?"), "utf-8")
    capsys.readouterr()
    assert main(["lesson", "check", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out.count("names no page “nowhere”") == 2
    assert said.err == "2 faults\n"
    found = lesson_catalog(PAGES)
    assert "mine" not in found.lessons
    assert any("names no page “nowhere”" in fault for fault in found.faults)
    assert found.faults[-1].startswith("pipe.toml: cannot be read")
    monkeypatch.setenv(FOLDER, str(tmp_path / "gone"))
    faults = lesson_catalog(PAGES).faults
    assert any(FOLDER in each for each in faults)
    assert not any(str(tmp_path) in each for each in faults)


def test_a_number_is_found_as_a_whole_one() -> None:
    """In the walks of lessons and tutorials."""
    for text, there, elsewhere in (
        ("0.64", ("0.64", "it is 0.64.", "0.643 (0.64)"), ("0.643", "10.64")),
        ("12", ("1, 12, 3",), ("1.12", "3,12", "12.5", "12,500")),
        ("−1.34", ("−1.34",), ()),
        ("rank 1", ("rank 1, of 9",), ("rank 148",)),
        ("head 0", ("Layer 0, head 0",), ()),
    ):
        assert all(stands_in(text, page) for page in there), text
        assert not any(stands_in(text, page) for page in elsewhere), text
