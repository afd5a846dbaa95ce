"""Settings: a JSON round trip that refuses what it does not know."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from models.plain import PlainData, choice_fault, range_fault


@dataclass(frozen=True)
class Kettle(PlainData):
    litres: float = 1.5
    cups: int = 6
    lid: bool = True
    colour: str = "red"
    owner: str | None = None


REFUSED = {
    "[]": "must be a JSON object",
    "{": "not readable JSON",
    "[" * 100_000: "not readable JSON",
    '{"cups": ' + "9" * 5000 + "}": "not readable JSON",
    '{"cup": 1, "lids": 2}': "unknown keys: 'cup', 'lids'",
    '{"\\ud800": 1}': r"unknown keys: '\ud800'",
    '{"cups": 1.5}': "cups must be int, not float",
    '{"cups": true}': "cups must be int, not bool",
    '{"cups": null}': "cups must be int, not NoneType",
    '{"lid": 1}': "lid must be bool, not int",
    '{"owner": 2}': "owner must be str | None, not int",
}


def test_what_is_sound_goes_through_json_and_the_rest_is_refused_in_a_sentence() -> None:
    kettle = Kettle(litres=2, owner="Ada")
    assert Kettle.from_json(kettle.to_json()) == kettle
    for text, words in REFUSED.items():
        with pytest.raises(ValueError) as refused:
            Kettle.from_json(text)
        sentence = str(refused.value)
        assert words in sentence
        assert sentence.endswith(".")
        assert len(sentence) < 300
        sentence.encode()  # it can be shown


def test_ranges_include_their_ends_and_exclude_what_is_no_number() -> None:
    def fault(litres: float) -> str | None:
        return range_fault(Kettle(litres), ("litres",), 1, 2)

    assert fault(1) is None
    assert fault(2) is None
    assert fault(0.999) == "litres must be between 1 and 2, not 0.999."
    assert fault(float("nan")) is not None
    assert fault(float("inf")) is not None
    assert range_fault(Kettle(), ("owner",), 1, 2) is None


def test_choices() -> None:
    choices: dict[str, tuple[str, ...]] = {"colour": ("red", "blue")}
    assert choice_fault(Kettle(), choices) is None
    fault = choice_fault(Kettle(colour="\ud800" * 9), choices)
    assert fault is not None
    assert fault.startswith("colour must be one of red, blue, not ")
    json.dumps(fault).encode()
    fault.encode()
