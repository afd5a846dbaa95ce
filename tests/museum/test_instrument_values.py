"""Every number an instrument says, with its mistake and without, made again by plain torch.

Nothing of the museum makes the numbers that are expected here.
"""

from __future__ import annotations

import math

import pytest
import torch

from explorer.library import opened_from
from explorer.museum.case import Case, case_of
from explorer.museum.instruments import INSTRUMENTS
from explorer.reading import read
from models.mistakes import MISTAKES
from tests.browser.truth import measured
from tests.browser.truth.measured import Run, gradients
from tests.source import ROOT

FOLDER = ROOT / "models" / "checkpoints" / "translation"
TEXT = "the black cat sees the white house"
LOOK = ("decoder.cross_attn", 0, 1)


@pytest.fixture(scope="module")
def right() -> Case:
    opened = opened_from(FOLDER, "translation")
    return case_of(opened, read(opened, TEXT), LOOK)


def run_of(case: Case) -> Run:
    """The same inputs, found without the museum: the text's tokens, and what the model answers."""
    opened = opened_from(FOLDER, "translation")
    ids = torch.tensor([[token.id for token in opened.tokenizer.encode(TEXT)]])
    written = opened.model.generate(ids, max_length=opened.config.max_len, greedy=True)
    return Run(case.model, ids, written[:, :-1], written[:, 1:], LOOK[2])


def with_its_mistake(right: Case, name: str) -> Case:
    return right.of(MISTAKES[measured.INSTRUMENTS[name].mistake].make(right.model))


def faults(name: str, case: Case) -> list[str]:
    found = INSTRUMENTS[name](case)
    said = dict(found.lines)["different ones"] if name == "Writing" else found.said
    claims = measured.INSTRUMENTS[name].claims(name, said, run_of(case))
    assert claims
    return [claim.fault() for claim in claims if claim.fault()]


def test_every_instrument_is_measured_here() -> None:
    assert set(measured.INSTRUMENTS) == set(INSTRUMENTS)


def test_its_numbers_are_those_of_plain_torch(right: Case, subtests: pytest.Subtests) -> None:
    for name in INSTRUMENTS:
        with subtests.test(name=name):
            assert faults(name, right) == []
            assert faults(name, with_its_mistake(right, name)) == []


def test_its_mistake_gives_another_number(right: Case, subtests: pytest.Subtests) -> None:
    """Else a test of both runs would hold for an instrument that looks at one of them alone."""
    for name in INSTRUMENTS:
        with subtests.test(name=name):
            wrong = with_its_mistake(right, name)
            assert INSTRUMENTS[name](wrong).named != INSTRUMENTS[name](right).named or (
                INSTRUMENTS[name](wrong).number
                != pytest.approx(INSTRUMENTS[name](right).number, rel=1e-3)
            )


def test_the_gradients_are_those_of_autograd(right: Case, subtests: pytest.Subtests) -> None:
    for is_right in [True, False]:
        with subtests.test(is_right=is_right):
            case = right if is_right else with_its_mistake(right, "Loss and gradients")
            shown = dict(INSTRUMENTS["Loss and gradients"](case).lines)
            true = gradients(run_of(case))
            assert set(true) == {"encoder.embed", "decoder.embed"}
            for site, size in true.items():
                value = float(shown[f"gradient at {site}, all tokens"].replace("e−", "e-"))
                assert value == pytest.approx(size, rel=6e-3)


def test_what_the_mistakes_say_is_known_beforehand(right: Case) -> None:
    """Numbers that follow from the mistake itself, without any pass of the model."""

    def number(name: str, is_wrong: bool) -> float:
        found = INSTRUMENTS[name](with_its_mistake(right, name) if is_wrong else right).number
        assert found is not None
        return found

    places = torch.arange(12)[:, None]
    evens = torch.arange(0, 64, 2)
    sines, cosines = ((places / 10_000 ** (2 * i / 64)) for i in (evens, evens + 1))
    doubled = torch.cat((sines.double().sin(), cosines.double().cos()), -1)
    spread = float((doubled[:-5] * doubled[5:]).sum(-1).std())
    assert number("Positions", True) == pytest.approx(spread, rel=1e-4)
    assert number("Positions", False) < 1e-5
    assert number("The scale", True) == pytest.approx(1 / math.sqrt(64), rel=1e-5)
    assert number("The scale", False) == pytest.approx(1 / math.sqrt(32), rel=1e-5)
    assert number("An empty row", True) == pytest.approx(1, abs=1e-6)
    assert number("An empty row", False) == 0
    assert number("What leaves the model", True) == pytest.approx(1, abs=1e-5)
    assert number("Another target", True) < 1e-4 < 1 < number("Another target", False)
    assert number("Swapped slices", True) < 1e-5 < 0.1 < number("Swapped slices", False)
    assert number("Causality check", False) < 1e-4 < number("Causality check", True)
    assert number("Filler", False) < 1e-4 < number("Filler", True)
