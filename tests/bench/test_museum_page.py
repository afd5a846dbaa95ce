"""The Museum: every exhibit on every kind of model, the hunt, and the documents' systems."""

from __future__ import annotations

import contextlib
import io
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer import library, reading
from explorer.bench import museum_finding
from explorer.first_look import first_look
from explorer.library import Opened
from explorer.museum import documents, learning
from explorer.museum.case import Case, case_of
from explorer.museum.exhibits import EXHIBITS, FINDABLE, Exhibit
from explorer.museum.instruments import INSTRUMENTS
from explorer.numbers import three
from models.mistakes import MISTAKES
from models.mistakes.attention import FILLS
from tests.grids import grid
from tests.shelf import NAMES

ROOT = Path(__file__).resolve().parents[2]
SHELL = ROOT / "explorer" / "shell.py"
GIVES_AWAY = "What gives it away"

pytestmark = pytest.mark.usefixtures("small_models")


def inside(**address: str) -> AppTest:
    at = AppTest.from_file(SHELL, default_timeout=120)
    for key, value in address.items():
        at.query_params[key] = value
    return at.run().switch_page("../pages/change/museum.py").run()


def said(at: AppTest) -> str:
    return "\n".join([*(t.value for t in at.text), *(m.value for m in at.markdown)])


def opened(name: str) -> Opened:
    return library.open_model(name)


def case(name: str) -> Case:
    model = opened(name)
    seen = reading.read(model, model.example)
    part = seen.parts[-1].name
    return case_of(model, seen, (part, 0, 0))


def case_as_shown(name: str) -> Case:
    """The same at the head that is worth seeing first, as the page has it."""
    right = case(name)
    return replace(right, look=first_look(right.opened))


@grid("exhibit, model", EXHIBITS, NAMES)
def test_every_exhibit_on_every_kind_of_model(model: str, exhibit: Exhibit) -> None:
    at = inside(model=model, exhibit=exhibit.label)
    assert not at.exception
    assert exhibit.right in said(at)
    assert GIVES_AWAY in said(at)
    assert exhibit.telling in said(at)


def test_the_number_is_that_of_both_runs(subtests: pytest.Subtests) -> None:
    """What stands on the page is what the instrument gives for both models."""
    for exhibit in FINDABLE:
        with subtests.test(exhibit=exhibit):
            at = inside(model="translation", exhibit=exhibit.label)
            right = case("translation")
            name = (
                exhibit.name if MISTAKES[exhibit.name].misfit(right.opened.config) is None else ""
            )
            assert name, "the translation model can have all of them"
            instrument = INSTRUMENTS[exhibit.sign]
            wrong = instrument(right.of(MISTAKES[name].make(right.model)))
            assert f"{exhibit.sign}, {wrong.short} against {instrument(right).short}." in said(at)


def test_switched_off_both_runs_are_alike() -> None:
    at = inside(model="translation", exhibit=EXHIBITS[4].label, mistake="false")
    found = re.search(r"Swapped slices, (\S+) against (\S+)\.\*\*", said(at))
    assert found is not None
    assert found[1] == found[2]
    at.toggle(key="mistake").set_value(True).run()
    assert "Swapped slices, 0 against" in said(at)


def test_the_document_s_own_numbers(subtests: pytest.Subtests) -> None:
    for exhibit, numbers in [
        (0, ("0.8415 0.5697 0.8020 0.6234", "0.8415 0.5403 0.8219 0.5697", "307", "102", "1.36")),
        (4, ("30,193,163", "44,127,755")),
        (5, ("4 of 128", "8 of 64", "feed-forward layer", "2,048", "1,024")),
        (6, ("(-0.042, -0.194)", "(-0.012, -0.150)")),
        (8, ("0.333 0.333 0.333", "NaN NaN NaN", "does not fit: an error", "0.000 0.000 0.000")),
        (9, ("1,050,624",)),
        (10, ("398,272", "520,064", "49,984")),
    ]:
        with subtests.test(exhibit=exhibit):
            at = inside(exhibit=EXHIBITS[exhibit].label)
            shown = "\n".join(table.value.to_string() for table in at.table)
            assert all(number in shown for number in numbers)


def test_the_fill_can_be_switched(subtests: pytest.Subtests) -> None:
    """Numbers make the row uniform, −∞ makes it no number; the lines make the same mistake."""
    for fill in FILLS:
        with subtests.test(fill=fill):
            at = inside(model="translation", exhibit=EXHIBITS[8].label, fill=fill)
            right = case("translation")
            wrong = MISTAKES[f"filled-row {fill}"].make(right.model)
            found = INSTRUMENTS["An empty row"](right.of(wrong))
            assert f"An empty row, {found.short} against 0." in said(at)
            assert (found.short == "NaN") is (fill == "−∞")
            at.session_state["code"] = True
            assert f"MISTAKES['filled-row {fill}']" in at.run().code[0].value


def test_a_document_s_numbers_are_made_once(subtests: pytest.Subtests) -> None:
    for name in ["fixed-heads", "no-padding-mask", "printed-count"]:
        with subtests.test(name=name):
            assert documents.FIGURES[name]() is documents.FIGURES[name]()


def test_what_must_be_known_to_read_the_numbers() -> None:
    assert "its last row stands in for the rows" in said(inside(exhibit=EXHIBITS[2].label))
    assert "fresh weights and twenty tokens, both from seed 0" in said(
        inside(exhibit=EXHIBITS[6].label)
    )
    noise = said(inside(exhibit=EXHIBITS[11].label))
    assert "leaving or reloading it ends them" in noise
    assert "The document measures with dropout on; here it is off." in noise


def test_a_run_that_the_address_asks_for_in_vain(subtests: pytest.Subtests) -> None:
    for key, asked, sentence in [
        ("order", "10000", "“Seed of the order” goes from 0 to 9,999, not “10000”; it is 0."),
        ("order", "many", "“Seed of the order” goes from 0 to 9,999, not “many”; it is 0."),
        ("question", "0", "not “0”; it is 1."),
    ]:
        with subtests.test(key=key):
            at = inside(model="translation", room="Find it", **{key: asked})
            assert not at.exception
            assert sentence in said(at) + "\n".join(info.value for info in [*at.info, *at.caption])


def test_a_large_model_is_made_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(documents.FIGURES, "lost-target", lambda: [("moved", "3e-7", "2.5")])
    at = inside(exhibit=EXHIBITS[2].label)
    assert "44,127,755 parameters, 177 MB" in said(at)
    at.button(key="compute").click().run()
    assert "3e-7" in at.table[-1].value.to_string()


def test_a_model_that_cannot_have_it_says_so() -> None:
    at = inside(model="reviews", exhibit=EXHIBITS[2].label)
    assert "reviews cannot have this mistake: it has no decoder beside an encoder." in said(at)
    assert "So translation makes it here" in said(at)


@pytest.mark.parametrize("exhibit", [7, 11])
def test_two_trainings_side_by_side(exhibit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.museum.learning.STEPS", 4)
    at = inside(model="translation", exhibit=EXHIBITS[exhibit].label)
    at.button(key="train_both").click().run(timeout=120)
    assert not at.exception
    assert "at step" in said(at)
    if exhibit == 11:
        assert re.search(r"away: an accuracy of \S+ on the batch just learned, of \S+ on", said(at))


@grid("model, instrument", NAMES, INSTRUMENTS)
def test_every_instrument_in_the_hunt(model: str, instrument: str) -> None:
    at = inside(model=model, room="Find it", instrument=instrument)
    assert not at.exception
    assert GIVES_AWAY not in said(at)


def test_the_order_follows_from_the_seed() -> None:
    some = [museum_finding.order(list(FINDABLE), seed) for seed in (0, 0, 1)]
    assert some[0] == some[1] != some[2]
    assert set(some[0]) == set(FINDABLE)


def test_find_it_and_the_score() -> None:
    """The right answer at once; then a wrong one, a second try, and the end of it."""
    hidden = museum_finding.order(list(FINDABLE), 3)
    at = inside(model="translation", room="Find it", order="3")
    at.selectbox(key="guess_translation_3_0").set_value(hidden[0].label).run()
    at.button(key="answer").click().run()
    assert "Found." in said(at)
    assert hidden[0].sign in said(at)
    assert "Found so far: 1 of 1." in said(at)
    at.button(key="next_run").click().run()
    assert GIVES_AWAY not in said(at)
    at.selectbox(key="guess_translation_3_1").set_value(hidden[0].label).run()
    at.button(key="answer").click().run()
    assert f"Not {hidden[0].label}. You have a second try" in said(at)
    assert GIVES_AWAY not in said(at)
    assert at.button(key="answer").disabled, "the same answer is none"
    at.selectbox(key="guess_translation_3_1").set_value(hidden[2].label).run()
    at.button(key="answer").click().run()
    assert "Not that one either." in said(at)
    assert "Found so far: 1 of 2." in said(at)
    at.selectbox(key="guess_translation_3_1").set_value(hidden[1].label).run()
    assert at.button(key="answer").disabled, "there is no third try"


def test_a_second_try_counts() -> None:
    hidden = museum_finding.order(list(FINDABLE), 3)
    at = inside(model="translation", room="Find it", order="3")
    for guess in (hidden[5], hidden[0]):
        at.selectbox(key="guess_translation_3_0").set_value(guess.label).run()
        at.button(key="answer").click().run()
    assert "Found so far: 1 of 1." in said(at)


def test_the_right_number_stands_beside_every_instrument(subtests: pytest.Subtests) -> None:
    for instrument in INSTRUMENTS:
        with subtests.test(instrument=instrument):
            at = inside(model="translation", room="Find it", instrument=instrument)
            right = INSTRUMENTS[instrument](case_as_shown("translation"))
            assert f"As it should be: {right.said}" in said(at)


def test_the_picture_is_one_that_shows_the_mistake(subtests: pytest.Subtests) -> None:
    """Of these the map of the head is the same in both runs."""
    for number in [2, 4, 7, 8, 9]:
        with subtests.test(number=number):
            exhibit, right = EXHIBITS[number - 1], case_as_shown("translation")
            wrong = right.of(MISTAKES[exhibit.name].make(right.model))
            drawn, should = (INSTRUMENTS[exhibit.sign](each).picture for each in (wrong, right))
            assert drawn is not None
            assert should is not None
            assert not drawn.is_like(should)
            shown = "\n".join(caption.value for caption in inside(exhibit=exhibit.label).caption)
            assert drawn.shows in shown


def test_maps_that_are_alike_are_not_drawn_twice() -> None:
    """A number instead: the first head of the encoder knows nothing of the decoder's target."""
    look = {"model": "translation", "part": "Encoder", "exhibit": EXHIBITS[2].label}
    assert "in both runs: the mistake does not show there." in said(inside(**look))
    assert "in both runs" not in said(inside(mistake="false", **look))


def test_a_number_gives_the_exhibits_away_that_are_no_run() -> None:
    counted = said(inside(exhibit=EXHIBITS[10].label))
    assert "What gives it away: 398,272 printed, 520,064 counted." in counted
    assert "two accuracies. Train both, below" in said(inside(exhibit=EXHIBITS[11].label))


def test_the_scale_is_that_of_the_document_s_table() -> None:
    at = inside(model="translation", exhibit=EXHIBITS[13].label)
    right = case("translation").model.config
    wide, narrow = (three(1 / math.sqrt(d)) for d in (right.d_model, right.head_width))
    assert f"The scale, {wide} against {narrow}." in said(at)


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda e: e.name)
def test_the_lines_run_as_pasted(
    exhibit: Exhibit, small_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They print sentences or rows of the page in its order, or points of its curves."""
    monkeypatch.setattr(learning, "STEPS", 4)
    monkeypatch.setattr(learning.random_labels, "__defaults__", (4,))
    at = inside(model="translation", exhibit=exhibit.label)
    at.session_state["code"] = True
    at.run()
    if exhibit.name == "random-labels":
        at.button(key="train_both").click().run(timeout=120)
    tables = [row for table in at.table for row in table.value.astype(str).to_numpy().tolist()]
    shown = [*(text.value for text in at.text), *(" ".join(row) for row in tables)]
    lines = printed_by(at.code[0].value, small_models)
    if exhibit.name == "random-labels":
        shown = shown[-1].partition(": ")[2].rstrip(".").split("; ")
        points = [line.split(" ", 1)[1].rpartition(" ") for line in lines[-3:]]
        lines = [f"{curve}: {three(float(value))}" for curve, _, value in points]
    elif exhibit.sign:
        lines = [line[:1].upper() + line[1:] for line in lines]
    assert len(lines) >= 2
    assert [words for words in shown if words in lines] == lines


def printed_by(lines: str, models: Path) -> list[str]:
    """What these lines print in a namespace of their own; `models` is where the model lies."""
    lines = lines.replace("folder = 'translation'", f"folder = {str(models / 'translation')!r}")
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(lines, "pasted", "exec"), {"__name__": "pasted"})
    return printed.getvalue().splitlines()
