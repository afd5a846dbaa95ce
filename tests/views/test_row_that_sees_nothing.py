"""A decoder whose first token is padding: its first row may see nothing, on every page."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.analysis.forward_pass.stages import stages_of
from explorer.catalog import opened_model
from explorer.text import character_tokenizer
from explorer.text.token import DECODER
from tests import apps
from tests.apps import said
from tests.tiny import save_model
from tests.views.drawing import PAGES, path_of, put_persistent, sent, titles


@pytest.fixture(autouse=True)
def _blind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only model there is: what begins each text is what it takes for padding."""
    words = character_tokenizer("abc ", DECODER)
    begins = words.encode("abc")[0].id
    save_model(tmp_path / "models", "blind", words, "abc", pad_id=begins)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "models"))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))


def differs_by_less_than_a_millionth(at: AppTest, sentence: str) -> bool:
    (differs,) = re.findall(sentence, said(at))
    return float(differs.replace("−", "-")) < 1e-6


def test_every_page_is_drawn_without_a_number_that_is_none(subtests: pytest.Subtests) -> None:
    for path in map(path_of, PAGES):
        with subtests.test(path=path):
            at = apps.page(path, model="blind", pinned="q0k0", query="0 · <s>", key="0 · <s>")
            assert "no value" not in said(at)
            assert not any("no value" in str(table.value.to_dict()) for table in at.table)


def test_pages_say_that_a_row_sees_nothing() -> None:
    assert "Every row sums to 1, except fully masked rows." in said(apps.page("overview/overview"))
    at = apps.page("attention/masks", example="Your sentence")
    assert "Weights: rows sum to 1, fully masked rows to 0" in titles(at)
    at = apps.page("attention/query_key", model="blind", query="0 · <s>", pair_view="Products")
    assert "Every key is masked for “<s>”: its whole row of weights is 0." in said(at)
    assert dict(zip(*at.table[0].value.to_dict("list").values(), strict=True))["weight"] == "0"
    steps, sentence = "attention/head_steps", r"max relative error (\S+)\."
    at = apps.page(steps, model="blind", pinned="q0k0", up_to="values", code="true")
    assert differs_by_less_than_a_millionth(at, sentence)


def test_every_stage_of_the_forward_pass() -> None:
    """Zeros from the weights to W_O; what is recomputed is what the pass had."""
    blind_row = {"masked": -torch.inf, "weights": 0.0, "head out": 0.0, "concat": 0.0}
    at = apps.page("forward_pass/forward_pass", model="blind")
    for stage in stages_of(opened_model.open_model("blind").config):
        wish = {"stage": stage.name, "decoder_token": "0", "key_token": "0"}
        put_persistent(at, "stages", **wish)
        if stage.kind == "tokens":
            continue
        header, planes = sent(at, "stage_values")
        row = np.frombuffer(planes["exact"], "<f4").reshape(header["shape"])[0]
        if stage.kind == "weights":
            assert "or are all 0 where every key is masked" in said(at)
        if stage.kind in blind_row:
            assert (row == blind_row[stage.kind]).all(), stage.name
        else:
            assert np.isfinite(row).all(), stage.name
        sentence = r"max relative error (\S+)\."
        assert differs_by_less_than_a_millionth(at, sentence), stage.name
        assert "no value" not in "".join(each.value for each in at.latex)
