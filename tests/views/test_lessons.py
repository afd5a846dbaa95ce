"""The panel of a lesson on every page, the list of all, and a file of the reader's own."""

from pathlib import Path

import pytest

from explorer.app import streamlit_patches
from explorer.commands.lesson_commands import TEMPLATE
from explorer.lessons import lesson_catalog
from tests import apps
from tests.apps import component_data, said
from tests.grids import grid

pytestmark = pytest.mark.usefixtures("small_models")
LESSON, LESSONS = TEMPLATE.read_bytes(), "the cat sleeps"


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lecturer's folder with one lesson."""
    (tmp_path / "own.toml").write_bytes(LESSON)
    monkeypatch.setenv(lesson_catalog.FOLDER, str(tmp_path))
    return tmp_path


def test_a_step_stands_on_whatever_page_is_drawn() -> None:
    for path in ("attention/attention", "training/training", "lessons/lessons"):
        at = apps.page(path, model="translation", lesson="own", lesson_step="2")
        (strip,) = component_data(at, "lesson_strip")
        assert (strip["at"], strip["control"], strip["done"]) == (2, "head", {"head": "1"})
        assert strip["steps"][0]["open"].endswith("&head=0&lesson=own&lesson_step=1")
        assert strip["shown"].endswith("&head=1&lesson=own&lesson_step=2")
        assert strip["following"] is None, "it is the last of the list"
        assert "Choose head 1 in the bar" in said(at)
    assert component_data(apps.page("attention/attention"), "lesson_strip") is None


@grid(
    "texts, ends",
    [("ab", LESSONS, "ab"), ("ab", "de", "ab"), ("", "ef", "ef")],
    [True, False],
)
def test_the_sentence_before_a_lesson_comes_back_unless_one_of_ones_own_is_over_it(
    texts: tuple[str, str, str], ends: bool, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step brings “the cat sleeps” and asks for “de”; one comes and goes as with Back."""
    before, typed, after = texts
    (own / "own.toml").write_bytes(LESSON.replace(b'head = "1"', b'text = "de"'))

    def go(**address: str) -> None:
        at.query_params.clear()
        at.query_params.update({"model": "letters", **address})
        for box in at.text_input:
            box.set_value(address.get("text", ""))
        with monkeypatch.context() as patch:
            patch.setattr(streamlit_patches, "came_back", lambda: True)
            apps.run(at)

    at = apps.page("attention/masks", model="letters", text=before)
    go(text=LESSONS, lesson="own", lesson_step="1")
    at.text_input(key="text").set_value(typed).run()
    if ends:
        at.switch_page("../../pages/lessons/lessons.py")
    go(**({} if ends else {"text": typed}))
    at.switch_page("../../pages/attention/masks.py")
    assert apps.run(at).text_input(key="text").value == after


def test_the_presenter_is_told_the_notes_and_what_follows() -> None:
    first = apps.page("attention/attention", model="translation", lesson="own", lesson_step="1")
    title, place, *_, notes, following = component_data(first, "presenter")
    assert (title, place) == ("Which word does a head attend to?", "1 of 2")
    assert (notes, following) == ("Let somebody read the first row aloud.", "Another head")
    last = apps.page("attention/attention", model="translation", lesson="own", lesson_step="2")
    assert component_data(last, "presenter")[-1] == "the end of the lesson"
    assert component_data(apps.page("attention/attention"), "presenter") == [""] * 5


def test_what_is_predicted_is_answered_until_the_lesson_changes(own: Path) -> None:
    at = apps.page("attention/attention", model="translation", lesson="own", lesson_step="2")
    assert "weights of its own" not in said(at)
    (guess,) = (each for each in at.button_group if each.key == "lesson_guess_own_2")
    apps.run(guess.set_value("The same"))
    assert "Not quite: it is “Others”.** Every head has weights of its own" in said(at)
    (own / "own.toml").write_bytes(LESSON.replace(b'"The same"', b'"Equal ones"'))
    apps.run(at)
    assert "weights of its own" not in said(at)


def test_a_step_that_does_not_exist_is_one_that_does() -> None:
    for step in ("0", "x", "1" * 5_000):
        at = apps.page("attention/masks", lesson="own", lesson_step=step)
        assert component_data(at, "lesson_strip")[0]["at"] in (1, 2)
    links = [each.proto.query_string for each in at.get("page_link")]
    assert links
    assert all("lesson=own" in each and "lesson_step=" in each for each in links), "it stays open"


def test_a_lesson_that_does_not_exist_is_left_with_a_click() -> None:
    at = apps.page("attention/masks", lesson="<b>gone</b>")
    assert "There is no lesson “<b>gone</b>” here" in said(at)
    at.button(key="leave_lesson").click().run()
    assert "There is no lesson" not in said(at)
    assert "lesson" not in at.query_params


def test_every_lesson_is_listed_and_what_is_none_is_said(own: Path) -> None:
    (own / "broken.toml").write_text("title = ")
    at = apps.page("lessons/lessons")
    rows = {row["name"]: row for row in component_data(at, "lesson_list")}
    assert rows["own"]["steps"][1].endswith("lesson=own&lesson_step=2")
    assert not rows["own"]["own"]
    assert "broken.toml: the file is not valid TOML" in said(at)
    assert str(own) not in said(at)


def test_an_uploaded_lesson_is_this_reader_s_alone_and_what_is_none_is_refused() -> None:
    at = apps.page("lessons/lessons")
    for data, own, answer in (
        (b"title = 3", set(), "mine.toml: “about”, “minutes”, “steps” are missing; add them."),
        (LESSON, {"mine"}, "is in the list"),
    ):
        apps.run(at.file_uploader(key="lesson_file").upload("mine.toml", data))
        assert {row["name"] for row in component_data(at, "lesson_list") if row["own"]} == own
        assert answer in said(at)
    others = component_data(apps.page("lessons/lessons"), "lesson_list")
    assert "mine" not in {row["name"] for row in others}
