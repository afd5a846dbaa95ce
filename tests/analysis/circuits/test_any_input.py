"""Whatever is typed or uploaded: it is read, or refused in a sentence, and never fails."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.circuit_metrics import LOGIT_DIFFERENCE, metrics_of
from explorer.analysis.circuits.default_corruption import default_corruption
from explorer.analysis.circuits.finding import FindingError, finding_from, finding_of
from explorer.analysis.circuits.pair_table import pairs_of_csv
from explorer.analysis.circuits.text_pairs import PairError, TextPair, question_of, token_pair
from explorer.catalog.opened_model import OpenModel, open_checkpoint
from explorer.catalog.shipped import SHIPPED
from explorer.commands import circuit_command
from tests.models.loading.mutations import ANY_JSON

NAMES = ("induction", "shakespeare", "negation", "reverse")
TEXTS = st.one_of(st.text(max_size=12), st.text(alphabet="ab c", max_size=12))


Made = TypeVar("Made")


@cache
def opened(name: str) -> OpenModel:
    return open_checkpoint(SHIPPED / name, name)


def made(make: Callable[[], Made]) -> Made | None:
    """What it makes; None where it says in one line why it does not."""
    try:
        return make()
    except (PairError, FindingError) as error:
        said = str(error)
    assert said[0] in f"“{said[0].upper()}", said
    assert said.endswith("."), said
    assert "\n" not in said, said
    return None


@given(st.sampled_from(NAMES), TEXTS, TEXTS, TEXTS, TEXTS, st.integers(0, 3))
def test_texts(name: str, clean: str, corrupted: str, answer: str, against: str, at: int) -> None:
    model = opened(name)
    metric = metrics_of(model.config)[at]
    texts = TextPair(clean, corrupted, answer, against)
    if pair := made(lambda: token_pair(model, texts, metric)):
        for places in zip(*pair.partners, strict=True):
            assert list(places) == sorted(set(places))
        assert len(pair.counterparts) == len(pair.clean)
        assert pair.clean_value != pair.corrupted_value


@given(st.sampled_from(NAMES), TEXTS)
def test_any_text_to_begin_with(name: str, clean: str) -> None:
    if found := default_corruption(opened(name), clean):
        assert token_pair(opened(name), TextPair(clean, found), LOGIT_DIFFERENCE)


@given(st.one_of(st.binary(), st.text(alphabet='ab,;\t"\n\r ').map(str.encode)))
def test_any_table(data: bytes) -> None:
    pairs = made(lambda: pairs_of_csv(data)) or {}
    assert all(pair.clean.strip() and pair.corrupted.strip() for pair in pairs.values())


@cache
def written() -> str:
    question = question_of(opened("induction"), [TextPair("abcabca", "acbacba")], LOGIT_DIFFERENCE)
    measured = circuit_command.measure(opened("induction"), question, "EAP", 2)
    return finding_of(opened("induction"), question, measured).to_json()


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Where there is anything in parsed JSON."""
    inside: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(place for key, each in inside for place in places(each, (*path, key)))]


@given(st.data())
def test_anything_in_the_place_of_anything_in_a_finding(data: st.DataObject) -> None:
    values = {"": json.loads(written())}
    *way, last = ("", *data.draw(st.sampled_from(places(values[""]))))
    inside: object = values
    for key in way:
        inside = inside[key]  # type: ignore[index]
    inside[last] = data.draw(ANY_JSON)  # type: ignore[index]
    if finding := made(lambda: finding_from(json.dumps(values[""]).encode())):
        assert finding_from(finding.to_json().encode()) == finding
