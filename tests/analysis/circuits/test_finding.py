"""A finding as a file: what is in it, what the command line writes, and what is none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.analysis.circuit_metrics import LOGIT_DIFFERENCE
from explorer.analysis.circuits.finding import (
    Finding,
    FindingError,
    finding_from,
    finding_of,
    model_difference,
    shape_of,
    weights_digest,
)
from explorer.analysis.circuits.pair_templates import make_pairs
from explorer.analysis.circuits.text_pairs import TextPair, question_of
from explorer.catalog.opened_model import OpenModel, open_checkpoint
from explorer.catalog.shipped import SHIPPED
from explorer.commands import circuit_command


@pytest.fixture(scope="module")
def induction() -> OpenModel:
    return open_checkpoint(SHIPPED / "induction", "induction")


@pytest.fixture(scope="module")
def finding(induction: OpenModel) -> Finding:
    """Two pairs of the induction model, all parts and six edges patched."""
    pairs = make_pairs(induction, "Induction", 2, 0).pairs
    question = question_of(induction, pairs, LOGIT_DIFFERENCE)
    measured = circuit_command.measure(induction, question, "EAP-IG", 6)
    return finding_of(induction, question, measured)


def test_what_is_written_is_read_again(finding: Finding) -> None:
    text = finding.to_json()
    assert finding_from(text.encode()) == finding
    assert finding_from(text.encode()).to_json() == text
    values = json.loads(text)
    assert {"layer", "head", "estimate", "exact"} < values["heads"][0].keys()
    assert {"source", "target", "reads", "estimate", "exact"} < values["edges"][0].keys()
    assert {"edges", "circuit", "complement", "random"} < values["faithfulness"][0].keys()


def test_it_holds_everything_that_was_measured(finding: Finding, induction: OpenModel) -> None:
    assert finding.digest == weights_digest(induction)
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
    shakespeare = open_checkpoint(SHIPPED / "shakespeare", "shakespeare")
    texts = TextPair("To be, or not to be", "To be, or now to be")
    question = question_of(shakespeare, [texts], LOGIT_DIFFERENCE)
    measured = circuit_command.measure(shakespeare, question, "EAP", 0)
    (pair,) = finding_of(shakespeare, question, measured).pairs
    again = question_of(shakespeare, [pair.texts], LOGIT_DIFFERENCE).pairs[0]
    assert (again.answer, again.against) == (question.pairs[0].answer, question.pairs[0].against)
    assert finding.pairs[0].answer == finding.pairs[0].names[0]
    assert finding.pairs[0].clean_tokens[1:] == tuple(finding.pairs[0].clean)


def test_weights_are_told_apart_by_their_digest(finding: Finding, induction: OpenModel) -> None:
    assert model_difference(finding, induction) == ""
    again = open_checkpoint(SHIPPED / "induction", "again")
    assert model_difference(finding, again) == "", "a name is no difference"
    next(again.model.parameters())[0, 0] += 1
    again = replace(again, name="again, trained on")
    assert model_difference(finding, again) == (
        "This finding is of induction, which has other weights of the same shape: here its pairs "
        "and its metric are measured with again, trained on."
    )
    control = open_checkpoint(SHIPPED / "induction-control", "induction-control")
    assert model_difference(finding, control) == (
        "This finding is of induction, which has another shape (2 layers of 2 heads, width 64, not "
        "1 layer of 2 heads, width 64): here its pairs and its metric are measured "
        "with induction-control."
    )


Place = tuple[str | int, ...]
NO_FINDING = (
    "This file is no finding about a circuit: choose one that the Circuits page or the command "
    "line wrote."
)
DAMAGED = "This finding is damaged and cannot be opened. "
HEADS = "2 layers of 2 heads, width 64."
KINDS = "'embedding', 'head', 'feed-forward', 'logits'."
METRICS = "Logit difference, Probability, Loss, Class score, Value, KL divergence."
LONG_TEXT = "holds a text of more than 20,000 characters."
SPOILT: list[tuple[Place, object, str]] = [
    (("heads",), ..., "There is no heads."),
    (("date",), "today", "There are unknown keys: 'date'."),
    (("heads", 1, "estimate"), "much", "heads[1]: estimate must be float, not str."),
    (("clean", "mean"), 1e301, "clean: mean must be a finite number."),
    (("model",), 3, "model must be str, not int."),
    (("shape",), [], "shape must be Shape, not list."),
    (("edges",), {}, "edges must be a list of Edge."),
    (("edges",), [{}] * 2, "There is no estimate and no reads and no source and no target."),
    (("pairs", 0, "names"), ["a", "b", "c"], "pairs[0]: names must be a list of 2 str."),
    (("pairs", 0, "clean_tokens"), ["a" * 30_000], f"pairs[0]: clean_tokens {LONG_TEXT}"),
    (("edges", 0, "source", "kind"), "neuron", f"edges[0]: source: kind must be one of {KINDS}"),
    (("heads", 0, "layer"), -1, f"heads[0]: layer must be between 0 and {2**53:,}, not -1."),
    (("heads", 0, "layer"), 7, f"Layer 7, head 0 is not one of {HEADS}"),
    (("edges", 0, "target", "head"), 5, f"Layer 0, head 5 is not one of {HEADS}"),
    (("metric",), "Charm", f"metric must be one of {METRICS}"),
    (("method",), "Magic", "method must be one of EAP-IG, EAP."),
    (("pairs",), [], "There is no pair of texts in it."),
]
"""Where a finding has another value, ... for none, and what is said of it."""
OTHER: list[tuple[bytes, str]] = [
    (b"{", DAMAGED + "The file is not readable JSON."),
    (b'{"format": NaN}', NO_FINDING),
    (b"[" * 100_000, DAMAGED + "The file is not readable JSON."),
    (b'{"format": "gpt"}', NO_FINDING),
    (b"\xff\xfe", "This file is no text, so it is no finding: choose another."),
]


def test_damaged_or_no_finding_is_one_sentence(finding: Finding, subtests: pytest.Subtests) -> None:
    later = json.dumps(json.loads(finding.to_json()) | {"version": 2}).encode()
    assert refusal(later) == (
        "This finding is of version 2 and this app reads version 1: open it with the app that "
        "wrote it."
    )
    for place, value, sentence in SPOILT:
        with subtests.test(place=place, value=str(value)[:9]):
            values = json.loads(finding.to_json())
            inside = values
            for key in place[:-1]:
                inside = inside[key]
            inside[place[-1]] = value
            if value is ...:
                del inside[place[-1]]
            assert refusal(json.dumps(values).encode()) == DAMAGED + sentence
    for data, sentence in OTHER:
        with subtests.test(data=data[:9]):
            assert refusal(data) == sentence


def refusal(data: bytes) -> str:
    with pytest.raises(FindingError) as refused:
        finding_from(data)
    return str(refused.value)


def test_a_class_is_kept_by_its_name() -> None:
    negation = open_checkpoint(SHIPPED / "negation", "negation")
    texts = TextPair("the food was not very good", "the food was really very good")
    question = question_of(negation, [texts], "Class score")
    made = finding_of(negation, question, circuit_command.measure(negation, question, "EAP", 3))
    assert (made.pairs[0].answer, made.pairs[0].against) == ("negative", "")
    assert finding_from(made.to_json().encode()) == made


INDUCTION = ["circuit", "--model", str(SHIPPED / "induction")]
TEXTS = ["--clean", "abcdeabcdeab", "--corrupted", "adcbeadcbeab"]


def finding_by(out: Path, *arguments: str) -> Finding:
    assert main([*INDUCTION, *arguments, "--out", str(out)]) == 0
    return finding_from(out.read_bytes())


def test_two_texts_make_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "finding.json"
    finding = finding_by(out, *TEXTS, "--answer", "c", "--against", "e", "--exact", "3")
    assert (finding.metric, finding.method, finding.steps) == ("Logit difference", "EAP-IG", 5)
    assert [(each.answer, each.against) for each in finding.pairs] == [("c", "e")]
    assert sum(edge.exact is not None for edge in finding.edges) == 3
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0].startswith("Logit difference: ")
    assert lines[1].startswith("Strongest heads by EAP-IG: 0.")
    assert lines[-1] == str(out)
    assert "exact, parts: 100%" in said.err
    first = out.read_text()
    finding_by(out, *TEXTS, "--answer", "c", "--against", "e", "--exact", "3")
    assert out.read_text() == first, "the same question makes the same file"


def test_templates_tables_metrics_and_methods(tmp_path: Path) -> None:
    out, table = tmp_path / "finding.json", tmp_path / "pairs.csv"
    finding = finding_by(
        out, "--template", "induction", "--count", "3", "--seed", "2", "--exact", "0"
    )
    assert len(finding.pairs) == 3
    assert all(edge.exact is None for edge in finding.edges)
    table.write_text("clean,corrupted\nabcabca,acbacba\nxyxyx,xyxyy\n")
    finding = finding_by(out, "--pairs", str(table), "--metric", "kl", "--method", "EAP-IG")
    assert (finding.metric, len(finding.pairs)) == ("KL divergence", 2)
    assert finding_by(out, *TEXTS, "--metric", "logit-difference", "--method", "EAP").steps == 1


ONE_OF = "two texts (--clean and --corrupted), a table (--pairs) or a template (--template)."
REFUSED = [
    ("", f"Give one of these: {ONE_OF}"),
    ("--clean abc", "There is no corrupted text yet"),
    ("--pairs /absent", "/absent cannot be read: No such file or directory."),
    ("--pairs /dev/zero", "/dev/zero has more than 1,000,000 bytes, the most that is read."),
    ("--template nothing", "There is no template called 'nothing' here: it is one of indirect"),
    ("--template induction --count 0", "--count must be from 1 to 200."),
    ("--clean abc --corrupted abd --metric joy", "There is no metric called 'joy' here"),
    ("--clean aba --corrupted abb --exact -1", "--exact must be a whole number from 0 on."),
    ("--clean aba --corrupted abb --metric kl --method EAP", "choose EAP-IG."),
    ("--clean aba --corrupted abb --out /absent/it", "/absent/it cannot be written: No such file"),
    ("--clean aba --corrupted abb --model absent", "There is no checkpoint folder absent."),
    (f"--clean ab --corrupted ba --model {SHIPPED / 'reverse'}", "a model with one stack"),
]


def test_what_cannot_be_done_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    for line, sentence in REFUSED:
        with subtests.test(line=line):
            out = tmp_path / "finding.json"
            assert main([*INDUCTION, "--out", str(out), *line.split()]) == 2
            assert sentence in capsys.readouterr().err.splitlines()[-1]
            assert not out.exists()
