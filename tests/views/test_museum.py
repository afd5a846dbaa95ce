"""The Museum: what every exhibit shows and pastes, the instruments, and the hunt."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.catalog import opened_model
from explorer.inference import forward_pass
from explorer.inference.first_look import first_look
from explorer.text.number_format import three
from explorer.views.museum import document_numbers, find_mistake, paired_training
from explorer.views.museum.exhibits import EXHIBITS, FINDABLE
from explorer.views.museum.instruments import INSTRUMENTS
from explorer.views.museum.measured_run import MeasuredRun, right_run
from explorer.views.museum.mistakes import MISTAKES
from explorer.views.museum.mistakes.attention_mistakes import FILLS
from tests import apps
from tests.apps import said
from tests.views.drawing import pasted, press, put_state, run, words_model

GIVES_AWAY, IN_BOTH = "What gives it away", "in both: here it does not give the mistake away"
TRAINED = ("softmax-twice", "random-labels")
"""Exhibits of two trainings side by side."""

pytestmark = pytest.mark.usefixtures("small_models")


def page(**address: str) -> AppTest:
    return apps.page("experiments/museum", **{"model": "translation", **address})


def tables(at: AppTest) -> str:
    return "\n".join(table.value.to_string() for table in at.table)


def case(name: str) -> MeasuredRun:
    model = opened_model.open_model(name)
    seen = forward_pass.run_text(model, model.example)
    return right_run(model, seen, (seen.parts[-1].name, 0, 0))


@pytest.fixture(scope="module")
def shown(_small_models: Path) -> Iterator[dict[str, AppTest]]:
    """Every exhibit on the encoder-decoder, with its lines to paste; only to be read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXPLORER_CHECKPOINTS", str(_small_models))
        patch.setattr(paired_training, "STEPS", 4)
        found = {}
        for exhibit in EXHIBITS:
            found[exhibit.name] = page(exhibit=exhibit.label)
            pasted(found[exhibit.name])
        yield found


def test_every_exhibit_says_what_is_right_and_what_gives_it_away(
    shown: dict[str, AppTest],
) -> None:
    others = cycle(["letters", "reviews", "reverse"])
    for exhibit, other in zip(EXHIBITS, others, strict=False):
        for at in (shown[exhibit.name], page(model=other, exhibit=exhibit.label)):
            for words in (exhibit.right, exhibit.telling):
                assert words in said(at), (exhibit.name, other)
            assert GIVES_AWAY in said(at) or IN_BOTH in said(at), (exhibit.name, other)


def test_the_number_is_that_of_both_runs(shown: dict[str, AppTest]) -> None:
    """What stands on the page is what the instrument gives for both models."""
    right = case("translation")
    for exhibit in FINDABLE:
        mistake, instrument = MISTAKES[exhibit.name], INSTRUMENTS[exhibit.sign]
        assert mistake.misfit(right.opened.config) is None, "this model can have all of them"
        wrong = instrument(right.with_model(mistake.make(right.model)))
        numbers = wrong.short, instrument(right).short
        words = f"{GIVES_AWAY}: {exhibit.sign}, {numbers[0]} against {numbers[1]}."
        if numbers[0] == numbers[1]:
            words = f"{exhibit.sign}, {numbers[0]} {IN_BOTH}."
        assert words in said(shown[exhibit.name])
    config = right.model.config
    wide, narrow = (three(1 / math.sqrt(d)) for d in (config.d_model, config.head_width))
    assert f"Score scale, {wide} against {narrow}." in said(shown[EXHIBITS[13].name])


def test_the_document_s_own_numbers(shown: dict[str, AppTest]) -> None:
    for number, figures in [
        (0, ("0.8415 0.5697 0.8020 0.6234", "0.8415 0.5403 0.8219 0.5697", "307", "102", "1.36")),
        (4, ("30,193,163", "44,127,755")),
        (5, ("4 of width 128", "8 of width 64", "feed-forward layer", "2,048", "1,024")),
        (6, ("(-0.042, -0.194)", "(-0.012, -0.150)")),
        (8, ("0.333 0.333 0.333", "NaN NaN NaN", "out of range: an error", "0.000 0.000 0.000")),
        (9, ("1,050,624",)),
        (10, ("398,272", "520,064", "49,984")),
    ]:
        page_of = tables(shown[EXHIBITS[number].name])
        assert [figure for figure in figures if figure not in page_of] == []
    for name in ["fixed-heads", "no-padding-mask", "printed-count"]:
        assert (
            document_numbers.DOCUMENT_NUMBERS[name]() is document_numbers.DOCUMENT_NUMBERS[name]()
        ), "they are made once"


def test_the_picture_is_one_that_shows_the_mistake(shown: dict[str, AppTest]) -> None:
    """Of these the map of the head is the same in both runs."""
    right = case("translation")
    right = replace(right, head=first_look(right.opened))
    for number in [2, 4, 7, 8, 9]:
        exhibit = EXHIBITS[number - 1]
        wrong = right.with_model(MISTAKES[exhibit.name].make(right.model))
        drawn, should = (INSTRUMENTS[exhibit.sign](each).picture for each in (wrong, right))
        assert drawn is not None
        assert should is not None
        assert not drawn.is_like(should)
        assert drawn.shows in said(shown[exhibit.name])


def test_the_lines_run_as_pasted(shown: dict[str, AppTest], small_models: Path) -> None:
    """They print sentences or rows of the page in its order."""
    for exhibit in EXHIBITS:
        if exhibit.name == "random-labels":  # its lines are run below
            continue
        at = shown[exhibit.name]
        _, lines = run(at.code[0].value, small_models)
        if exhibit.sign:
            lines = [line[:1].upper() + line[1:] for line in lines]
        rows = [row for table in at.table for row in table.value.astype(str).to_numpy().tolist()]
        on_screen = [*(text.value for text in at.text), *(" ".join(row) for row in rows)]
        assert len(lines) >= 2
        assert [words for words in on_screen if words in lines] == lines, exhibit.name


@pytest.mark.parametrize("name", TRAINED)
def test_two_trainings_side_by_side(
    name: str, small_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of random labels the lines print the last points of the curves."""
    monkeypatch.setattr(paired_training, "STEPS", 4)
    monkeypatch.setattr(paired_training.train_on_random_labels, "__defaults__", (4,))
    (exhibit,) = (each for each in EXHIBITS if each.name == name)
    at = page(exhibit=exhibit.label)
    lines = pasted(at)
    press(at, "train_both")
    assert "at step" in said(at)
    if name == "random-labels":
        away = r"away: an accuracy of \S+ on the training batch, of \S+ on"
        assert re.search(away, said(at))
        _, printed = run(lines, small_models)
        points = [line.split(" ", 1)[1].rpartition(" ") for line in printed[-3:]]
        on_screen = at.text[-1].value.partition(": ")[2].rstrip(".").split("; ")
        assert on_screen == [f"{curve}: {three(float(value))}" for curve, _, value in points]


def test_switched_off_both_runs_are_alike() -> None:
    at = page(exhibit=EXHIBITS[4].label, mistake="false")
    assert re.search(r"Without the mistake: Swapped slices, \S+\.\*\*", said(at))
    assert GIVES_AWAY not in said(at), "there is no mistake to give away"
    at.toggle(key="mistake").set_value(True).run()
    assert "Swapped slices, 0 against" in said(at)
    place = {"part": "Encoder", "exhibit": EXHIBITS[2].label}
    alike = "the map is the same in both models, the mistake does not show there."
    assert alike in said(page(**place)), "the encoder's first head knows no target"
    assert "in both models" not in said(page(mistake="false", **place))


def test_a_number_that_is_the_same_in_both_models_gives_nothing_away(
    shown: dict[str, AppTest],
) -> None:
    """Both models repeat themselves here, so the count of distinct tokens tells nothing."""
    right = case("translation")
    wrong = right.with_model(MISTAKES["never-appends"].make(right.model))
    counts = [INSTRUMENTS["Generation"](each).short for each in (wrong, right)]
    assert counts[0] == counts[1]
    words = said(shown["never-appends"])
    assert f"Generation, {counts[0]} {IN_BOTH}." in words
    assert GIVES_AWAY not in words


def test_the_fill_can_be_switched() -> None:
    """Numbers make the row uniform, −∞ makes it no number; the lines make the same mistake."""
    right = case("translation")
    for fill in FILLS:
        at = page(exhibit=EXHIBITS[8].label, fill=fill)
        wrong = MISTAKES[f"filled-row {fill}"].make(right.model)
        found = INSTRUMENTS["Fully masked row"](right.with_model(wrong))
        assert f"Fully masked row, {found.short} against 0." in said(at)
        assert (found.short == "NaN") is (fill == "−∞")
        assert f"MISTAKES['filled-row {fill}']" in pasted(at)


def test_what_needs_another_model_is_made_when_asked_or_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(
        document_numbers.DOCUMENT_NUMBERS, "lost-target", lambda: [("moved", "3e-7", "2.5")]
    )
    at = page(exhibit=EXHIBITS[2].label)
    assert "44,127,755 parameters, 177 MB" in said(at)
    assert "3e-7" in tables(press(at, "compute"))
    at = page(model="reviews", exhibit=EXHIBITS[2].label)
    assert "reviews cannot have this mistake: it has no decoder beside an encoder." in said(at)
    assert "So it is made in translation" in said(at)


def test_a_mistake_that_no_model_can_have_promises_no_more_than_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    words_model(tmp_path, "sandwich", norm_position="sandwich")
    label = {exhibit.name: exhibit.label for exhibit in EXHIBITS}
    at = put_state(page(model="sandwich", exhibit=label["norm-order"]), code=True)
    assert "No model here can have this mistake: it has norms before and after" in said(at)
    assert "own numbers are below" not in said(at)
    assert "DOCUMENT_NUMBERS" not in at.code[0].value
    at = page(model="sandwich", exhibit=label["lost-target"])
    assert "The document's own numbers are below." in said(at)


def test_every_instrument_in_the_hunt() -> None:
    for instrument, model in zip(INSTRUMENTS, cycle(["letters", "reviews"]), strict=False):
        for name in ("translation", model):
            at = page(model=name, room="Find the mistake", instrument=instrument)
            assert GIVES_AWAY not in said(at)
            assert "As it should be: " in said(at) or name != "translation"


def test_the_order_follows_from_the_seed() -> None:
    some = [find_mistake.mistakes_in_order(list(FINDABLE), seed) for seed in (0, 0, 1)]
    assert some[0] == some[1] != some[2]
    assert set(some[0]) == set(FINDABLE)


def test_find_it_and_the_score() -> None:
    """The right answer at once; then a wrong one, a second try, and the end of it."""
    hidden = find_mistake.mistakes_in_order(list(FINDABLE), 3)
    at = page(room="Find the mistake", order="3")

    def guess(question: int, answer: int) -> str:
        key = f"guess_translation_3_{question}"
        at.selectbox(key=key).set_value(hidden[answer].label).run()
        return said(press(at, "answer"))

    found = guess(0, 0)
    assert "Found." in found
    assert hidden[0].sign in found
    assert "Found so far: 1 of 1." in found
    assert GIVES_AWAY not in said(press(at, "next_run"))
    missed = guess(1, 0)
    assert f"Not {hidden[0].label}. You have a second try" in missed
    assert GIVES_AWAY not in missed
    assert at.button(key="answer").disabled, "the same answer is none"
    missed = guess(1, 2)
    assert "Not that one either." in missed
    assert "Found so far: 1 of 2." in missed
    at.selectbox(key="guess_translation_3_1").set_value(hidden[1].label).run()
    assert at.button(key="answer").disabled, "there is no third try"

    at = page(room="Find the mistake", order="3")
    guess(0, 5)
    assert "Found so far: 1 of 1." in guess(0, 0), "a second try counts"


def test_what_is_said_of_the_repository_s_code_names_where_it_was_read() -> None:
    """The document is its README alone, which holds none of the code."""
    found = said(page(exhibit=EXHIBITS[12].label))
    assert "the repository's model.py, read at its commit 7620f86, normalizes the input" in found
    assert "Nor does that file parse" in found
