"""Text as evidence on the page Circuits: lines found, refused, measured and shown."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.line_activations import token_activations
from explorer.app.session import KEY
from explorer.catalog import opened_model
from explorer.catalog.folders import activations_root
from explorer.circuits.built_in_lines import OF_TASK, built_in_lines, built_in_texts
from explorer.text.number_format import three
from explorer.views.circuits.evidence import NOT_SEARCHED
from explorer.views.shared import long_work
from tests import apps
from tests.views.drawing import press, sent

PATH = "experiments/circuits"
ASKED = {"circuit_view": "Text as evidence", "text": "the cat", "corrupted": "the hat"}
LINES = "the cat and the hat\nthe hat\nand the cat\nthat cat\n"


@pytest.fixture(autouse=True)
def _own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_models: Path) -> None:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))


def pasted(text: str, **asked: str) -> AppTest:
    at = apps.page(PATH, **{**ASKED, "model": "letters", "lines_from": "Pasted text", **asked})
    at.text_area(key="evidence_text").set_value(text).run()
    assert not at.exception
    return at


@pytest.mark.parametrize("by", ["Output norm", "Largest weight"])
def test_the_best_lines_and_their_tokens_are_those_of_the_core(by: str) -> None:
    text = f"{LINES}the {by}\n"  # of its own: what was measured before is kept in memory
    at = pasted(text, excited_by=by, layer="1", head="2")
    opened = opened_model.open_model("letters")
    name = "norm" if by == "Output norm" else "weight"
    largest = {}
    for line in text.splitlines():
        found = token_activations(opened, [opened.tokenizer.encode(line)])
        values = getattr(found, name)[0, 1, 2]
        largest[line] = float(values.max())
    best = sorted(largest, key=lambda line: -largest[line])
    table = at.dataframe[-1].value
    assert list(table["text"]) == best
    assert list(table[name]) == [three(largest[line]) for line in best]
    header, _ = sent(at, "line_0")
    assert header["labels"] == [token.label for token in opened.tokenizer.encode(best[0])]
    assert max(header["shades"]) == 1.0
    assert header["shades"][0] == 0.0, "the first token does not count"
    assert "line_2" in apps.views(at)
    assert "line_3" not in apps.views(at)
    assert len(list(activations_root().iterdir())) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no line to read yet: type or upload a text."),
        ("a" * 1_001, "A line of this text has 1,001 characters"),
        ("\n".join(map(str, range(1_001))), "The text has 1,001 lines; at most 1,000 lines"),
    ],
)
def test_a_text_that_is_no_evidence_is_refused_in_a_sentence(text: str, said: str) -> None:
    at = pasted(text)
    assert said in apps.said(at)
    assert "line_0" not in apps.views(at)


def test_another_head_is_shown_without_measuring_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pasted(LINES)
    monkeypatch.setattr("explorer.circuits.exciting_lines.activations_by_batch", None)
    assert "line_0" in apps.views(pasted(LINES, layer="1", head="3"))


def test_what_takes_long_waits_for_a_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "QUICK", 10)
    at = pasted(f"{LINES}hat cat\n")
    assert "0 of 5 lines are measured." in apps.said(at)
    press(at, "begin_lines")
    assert "\n5 lines." in apps.said(at)
    assert at.session_state[KEY].long_runs


def test_the_card_of_a_head_has_the_three_best_lines_of_the_text_searched_last() -> None:
    at = pasted(LINES, layer="1", head="2")
    best = list(at.dataframe[-1].value["text"])[:3]
    at.segmented_control(key="circuit_view").set_value("Head card").run()
    assert not at.exception
    (table,) = (each.value for each in at.dataframe if "text" in each.value)
    assert list(table["text"]) == best
    fresh = apps.page(PATH, **{**ASKED, "model": "letters", "circuit_view": "Head card"})
    assert NOT_SEARCHED in apps.said(fresh)


def test_the_texts_of_the_app_are_lines(small_models: Path) -> None:
    opened = opened_model.open_model("letters")
    for name in built_in_texts(opened):
        lines = built_in_lines(opened, name)
        assert 20 < len(lines) <= 300
        assert all(line == line.strip() and line for line in lines)


def test_a_model_of_a_task_has_the_examples_of_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPLORER_CHECKPOINTS")
    opened = opened_model.open_model("induction")
    assert built_in_texts(opened)[0] == OF_TASK
    (first, *_) = built_in_lines(opened, OF_TASK)
    assert first.isalpha()
