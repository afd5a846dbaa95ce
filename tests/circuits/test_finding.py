"""A finding as a file: what is in it, that it is read as it was written, and what is none."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from explorer.catalog.opened_model import Opened, opened_from
from explorer.catalog.shipped import SHIPPED
from explorer.circuits import circuit_command
from explorer.circuits.finding import (
    Finding,
    FindingError,
    digest_of,
    finding_from,
    other_model,
    shape_of,
)
from explorer.circuits.made_finding import finding_of
from explorer.circuits.outcome import LOGIT_DIFFERENCE
from explorer.circuits.pair_templates import make_pairs
from explorer.circuits.text_pairs import TextPair, question_of


@pytest.fixture(scope="module")
def induction() -> Opened:
    return opened_from(SHIPPED / "induction", "induction")


@pytest.fixture(scope="module")
def finding(induction: Opened) -> Finding:
    """Two pairs of the induction model, all parts and six edges patched."""
    pairs = make_pairs(induction, "Induction", 2, 0).pairs
    question = question_of(induction, pairs, LOGIT_DIFFERENCE)
    return finding_of(
        induction, question, circuit_command.measure(induction, question, "EAP-IG", 6)
    )


def test_what_is_written_is_read_again(finding: Finding) -> None:
    text = finding.to_json()
    assert finding_from(text.encode()) == finding
    assert finding_from(text.encode()).to_json() == text
    values = json.loads(text)
    assert {"layer", "head", "estimate", "exact"} < values["heads"][0].keys()
    assert {"source", "target", "reads", "estimate", "exact"} < values["edges"][0].keys()
    assert {"edges", "circuit", "complement", "random"} < values["faithfulness"][0].keys()


def test_it_holds_everything_that_was_measured(finding: Finding, induction: Opened) -> None:
    assert finding.digest == digest_of(induction)
    assert finding.shape == shape_of(induction)
    assert [(each.layer, each.head) for each in finding.heads] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert finding.feed_forward == ()
    assert all(each.exact is not None and each.spread is not None for each in finding.heads)
    difference = finding.clean.mean - finding.corrupted.mean
    assert finding.embedding.exact == pytest.approx(difference, rel=1e-4)
    patched = [edge.exact is not None for edge in finding.edges]
    assert patched == [True] * 6 + [False] * (len(finding.edges) - 6)
    assert len(finding.edges) == finding.edges_in_all
    assert finding.faithfulness[-1].circuit == pytest.approx(1, abs=1e-4)
    strongest = next(e for e in finding.edges if e.source.kind == e.target.kind == "head")
    assert (strongest.source.layer, strongest.target.layer, strongest.reads) == (0, 1, "k")
    assert finding.correlation is not None


def test_answers_are_kept_as_they_can_be_typed(finding: Finding) -> None:
    shakespeare = opened_from(SHIPPED / "shakespeare", "shakespeare")
    texts = TextPair("To be, or not to be", "To be, or now to be")
    question = question_of(shakespeare, [texts], LOGIT_DIFFERENCE)
    measured = circuit_command.measure(shakespeare, question, "EAP", 0)
    (pair,) = finding_of(shakespeare, question, measured).pairs
    again = question_of(shakespeare, [pair.texts], LOGIT_DIFFERENCE).pairs[0]
    assert (again.answer, again.against) == (question.pairs[0].answer, question.pairs[0].against)
    assert finding.pairs[0].answer == finding.pairs[0].names[0]
    assert finding.pairs[0].clean_tokens[1:] == tuple(finding.pairs[0].clean)


def test_weights_are_told_apart_by_their_digest(finding: Finding, induction: Opened) -> None:
    assert other_model(finding, induction) == ""
    again = opened_from(SHIPPED / "induction", "again")
    assert other_model(finding, again) == "", "a name is no difference"
    next(again.model.parameters())[0, 0] += 1
    again = replace(again, name="again, trained on")
    assert other_model(finding, again) == (
        "This finding is of induction, which has other weights of the same shape: here its pairs "
        "and its metric are asked of again, trained on."
    )
    control = opened_from(SHIPPED / "induction-control", "induction-control")
    assert other_model(finding, control) == (
        "This finding is of induction, which has another shape (2 layers of 2 heads, width 64, not "
        "1 layer of 2 heads, width 64): here its pairs and its metric are asked of "
        "induction-control."
    )


def changed(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda finding: finding.update(values)


NO_FINDING = (
    "This file is no finding about a circuit: choose one that the Circuits page or the command "
    "line wrote."
)
DAMAGED = "This finding is damaged and cannot be opened. "
SPOILT: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another format": (changed(format="gpt"), NO_FINDING),
    "a later version": (
        changed(version=2),
        "This finding is of version 2 and this app reads version 1: open it with the app that "
        "wrote it.",
    ),
    "a missing field": (lambda values: values.pop("heads"), DAMAGED + "It misses 'heads'."),
    "a stray field": (changed(date="today"), DAMAGED + "It has no field 'date'."),
    "a text for a number": (
        lambda values: values["heads"][1].update(estimate="much"),
        DAMAGED + "heads[1].estimate must be a finite number.",
    ),
    "a truth value": (
        lambda values: values["clean"].update(mean=True),
        DAMAGED + "clean.mean must be a finite number.",
    ),
    "a number for a text": (changed(model=3), DAMAGED + "model must be a text."),
    "a long text": (
        changed(model="m" * 30_000),
        DAMAGED + "model has more than 20,000 characters.",
    ),
    "no object": (changed(shape=[]), DAMAGED + "shape must be an object of named values."),
    "no list": (changed(edges={}), DAMAGED + "edges must be a list of at most 1,000."),
    "more edges than are ever written": (
        lambda values: values.update(edges=values["edges"][:1] * 1_001),
        DAMAGED + "edges must be a list of at most 1,000.",
    ),
    "three names": (
        lambda values: values["pairs"][0].update(names=["a", "b", "c"]),
        DAMAGED + "pairs[0].names must be a list of at most 2.",
    ),
    "one name": (
        lambda values: values["pairs"][0].update(names=["a"]),
        DAMAGED + "pairs[0].names must be a list of 2.",
    ),
    "an unknown kind": (
        lambda values: values["edges"][0]["source"].update(kind="neuron"),
        DAMAGED + "edges[0].source.kind must be one of 'embedding', 'head', 'feed-forward', "
        "'logits'.",
    ),
    "a negative layer": (
        lambda values: values["heads"][0].update(layer=-1),
        DAMAGED + "heads[0].layer must be a whole number from 0 on.",
    ),
    "a layer that is none": (
        lambda values: values["heads"][0].update(layer=7),
        DAMAGED + "Layer 7, head 0 is not one of 2 layers of 2 heads, width 64.",
    ),
    "an edge of no head": (
        lambda values: values["edges"][0]["target"].update(head=5),
        DAMAGED + "Layer 0, head 5 is not one of 2 layers of 2 heads, width 64.",
    ),
    "an unknown metric": (
        changed(metric="Charm"),
        DAMAGED + "metric must be one of Logit difference, Probability, Loss, Class score, KL "
        "divergence.",
    ),
    "an unknown method": (changed(method="Magic"), DAMAGED + "method must be one of EAP-IG, EAP."),
    "no pairs": (changed(pairs=[]), DAMAGED + "There is no pair of texts in it."),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_damaged_finding_is_refused_in_a_sentence(name: str, finding: Finding) -> None:
    spoil, sentence = SPOILT[name]
    values = json.loads(finding.to_json())
    spoil(values)
    assert refusal(json.dumps(values).encode()) == sentence


FILES = {
    "no JSON": (b"{", DAMAGED + "The file is not readable JSON."),
    "a number that is none": (b'{"format": NaN}', DAMAGED + "The file is not readable JSON."),
    "deep": (b"[" * 100_000, DAMAGED + "The file is not readable JSON."),
    "another file": (b"[1, 2]", NO_FINDING),
    "no text": (b"\xff\xfe", "This file is no text, so it is no finding: choose another."),
}


@pytest.mark.parametrize("name", FILES)
def test_another_file_is_refused_in_a_sentence(name: str) -> None:
    data, sentence = FILES[name]
    assert refusal(data) == sentence


def refusal(data: bytes) -> str:
    with pytest.raises(FindingError) as refused:
        finding_from(data)
    return str(refused.value)


def test_a_class_is_kept_by_its_name() -> None:
    negation = opened_from(SHIPPED / "negation", "negation")
    texts = TextPair("the food was not very good", "the food was really very good")
    question = question_of(negation, [texts], "Class score")
    measured = circuit_command.measure(negation, question, "EAP", 3)
    made = finding_of(negation, question, measured)
    assert (made.pairs[0].answer, made.pairs[0].against) == ("negative", "")
    assert finding_from(made.to_json().encode()) == made
