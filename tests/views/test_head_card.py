"""The head card on the page Circuits: its numbers are those of the core, for every kind of head."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.standard_prompts import standard_scores
from explorer.catalog import opened_model
from explorer.circuits.head_scores import THRESHOLD, head_scores
from explorer.text import word_tokenizer
from explorer.text.number_format import three
from explorer.text.special import DECODER
from tests import apps
from tests.shelf import WORDS, put
from tests.views.drawing import sent, with_overflow

CARD = {"circuit_view": "Head card"}
TEXTS = {
    "letters": ("the cat", "the hat"),
    "reviews": ("not a cat", "not a dog"),
    "reverse": ("31415", "31425"),
    "gpt2": ("5 17 3 29", "5 17 4 29"),
    "bert": ("the cat was [MASK]", "the dog was [MASK]"),
}


def card(model: str, layer: int = 0, head: int = 1, **more: str) -> AppTest:
    text, corrupted = TEXTS[model]
    at = {"model": model, "text": text, "corrupted": corrupted, "layer": str(layer)}
    return apps.page("experiments/circuits", **CARD, **at, head=str(head), **more)


def table(at: AppTest) -> dict[str, str]:
    rows = at.table[0].value
    return {
        title.replace("\u00a0", " "): value
        for title, value in zip(rows["score"], rows["value"], strict=True)
    }


@pytest.mark.parametrize("model", list(TEXTS))
def test_every_kind_of_model_has_a_card(
    model: str, small_models: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_MODELS", str(published))
    at = card(model)
    assert "card_map" in apps.views(at)
    opened = opened_model.open_model(model)
    induction = float(standard_scores(opened)["induction"][0, 1])
    assert table(at)["Induction"] == three(induction)
    assert ("Copying" in table(at)) == (opened.config.head == "language-model")
    assert "Direct contribution: " in apps.said(at)
    has_tokens = "raises most" in [name for each in at.dataframe for name in each.value]
    assert has_tokens == (opened.config.head != "classifier")


def test_the_earlier_heads_are_a_table_to_pick_from(small_models: Path) -> None:
    assert "composition" not in apps.views(card("letters"))
    header, _ = sent(card("letters", layer=1, composed_by="Q"), "composition")
    assert header["shape"] == [4, 1]
    assert header["words"]["title"].startswith("Q-composition of layer 1, head 1")


def test_a_head_has_a_name_only_where_a_score_justifies_it(small_models: Path) -> None:
    induction = opened_model.open_model("letters")
    found = head_scores(induction, 1, 1)
    assert found.names == ()
    assert found.named.startswith("No name")


def test_the_induction_heads_are_named_and_no_head_for_its_weight_on_the_first_token() -> None:
    opened = opened_model.open_model("induction")
    for layer in range(2):
        for head in range(2):
            found = head_scores(opened, layer, head)
            by_title = {each.title: each for each in found.scores}
            assert ("induction head" in found.names) == (layer == 1)
            assert (by_title["Induction"].value >= THRESHOLD) == (layer == 1)
            assert not any("first" in name for name in found.names)
            assert by_title["Induction"].heads == 4


@pytest.mark.parametrize("view", ["Head card", "Text as evidence"])
@pytest.mark.parametrize("part", ["layer", "logits"])
def test_of_a_pass_that_is_not_finite_nothing_is_shown_but_why(
    view: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "huge", word_tokenizer(WORDS, DECODER), "the cat", kind="decoder")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    with_overflow("huge", part)
    asked = {"model": "huge", "text": "the cat", "corrupted": "the dog", "circuit_view": view}
    at = apps.page("experiments/circuits", **asked)
    assert "is not finite" in apps.said(at)
    assert apps.views(at) & {"card_map", "line_0"} == set()
