"""A decoder whose first token is padding: its first row may see nothing, on every page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from explorer import library, masks, reading
from explorer.analysis.stages import stages
from explorer.analysis.walk import stages_of
from explorer.components.wire import unpack
from explorer.text import character_tokenizer
from explorer.text.special import DECODER
from models import Transformer, save_checkpoint
from tests import apps
from tests.apps import said
from tests.served import ROOT
from tests.shelf import TINY

TEXT = "abc"
PAGES = sorted(str(path.relative_to(ROOT / "pages"))[:-3] for path in ROOT.glob("pages/*/*.py"))


@pytest.fixture(autouse=True)
def _blind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only model there is: what begins each text is what it takes for padding."""
    words = character_tokenizer("abc ", DECODER)
    begins = words.encode(TEXT)[0].id
    sizes = {"vocab_size": words.vocab_size, "kind": "decoder", "n_layers": 2}
    config = TINY.replace(**sizes, pad_id=begins, bos_id=words.bos_id, eos_id=words.eos_id)
    run = {"title": "Blind", "example": TEXT}
    save_checkpoint(
        tmp_path / "shelf" / "blind", Transformer(config), tokenizer=words.to_json(), run=run
    )
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "shelf"))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))


def test_its_first_row_sees_nothing() -> None:
    of = reading.read(library.open_model("blind"), TEXT)
    mask = of.mask("decoder.self_attn", 0)
    assert mask.any(-1).tolist() == [False, True, True, True]


def test_every_page_is_drawn_without_a_number_that_is_none(subtests: pytest.Subtests) -> None:
    for path in PAGES:
        with subtests.test(path=path):
            at = apps.page(path, model="blind", held="q0k0", query="0 · <s>", key="0 · <s>")
            assert "no value" not in said(at)
            assert not any("no value" in str(table.value.to_dict()) for table in at.table)


def test_that_every_row_adds_up_to_one_is_said_only_where_it_is_so() -> None:
    assert "adds up to one, but for rows that see nothing." in said(apps.page("look/start"))
    assert "sums to 1, but for those that see nothing" in said(
        apps.page("look/masks", example="Your sentence")
    )


def test_the_padding_that_is_drawn_is_what_the_pass_used() -> None:
    shown = masks.of(reading.read(library.open_model("blind"), TEXT), "decoder.self_attn")
    assert not shown.padding[:, 0].any()
    assert torch.equal(shown.padding & shown.causal, shown.both)


def test_query_and_key_says_it() -> None:
    at = apps.page("look/pairs", model="blind", query="0 · <s>")
    assert "“<s>” may look at nothing: its whole row of weights is 0." in said(at)
    assert dict(zip(*at.table[0].value.to_dict("list").values(), strict=True))["weight"] == "0"


def numbers_of(planes: dict[str, bytes], header: dict[str, Any]) -> Tensor:
    """What a view was sent in single precision."""
    return torch.tensor(np.frombuffer(planes["exact"], "<f4").reshape(header["shape"]))


BLIND_ROW = {"masked": -torch.inf, "weights": 0.0, "head out": 0.0, "concat": 0.0}


def test_every_stage_of_the_whole_pass() -> None:
    """Zeros from the weights on until W_O; everything made again is what the pass had."""
    at = apps.page("look/walk", model="blind")
    for stage in stages_of(library.open_model("blind").config):
        wish = {"stage": stage.name, "decoder_token": "0", "key_token": "0"}
        at.session_state["_folded_walk"] = wish
        at.run()
        assert not at.exception, stage.name
        if stage.kind == "tokens":
            continue
        (view,) = (each for each in at.get("bidi_component") if each.key == "walk_values")
        header, planes = unpack(view.proto.bytes)
        row = numbers_of(planes, header)[0]
        if stage.kind in BLIND_ROW:
            assert (row == BLIND_ROW[stage.kind]).all(), stage.name
        else:
            assert row.isfinite().all(), stage.name
        (differs,) = re.findall(r"differs by at most (\S+) of its largest", said(at))
        assert float(differs.replace("−", "-")) < 1e-6, stage.name
        assert "no value" not in "".join(each.value for each in at.latex)


def test_the_stages_of_the_head() -> None:
    at = apps.page("look/stages", model="blind", held="q0k0", up_to="values")
    of = reading.read(library.open_model("blind"), TEXT)
    every = range(len(of.tokens))
    made = stages(of, "decoder.self_attn", 0, 0, every, every)
    assert made.logits[0].isneginf().all()
    assert not made.weights[0].any()
    assert not made.out[0].any()
    assert made.difference < 1e-6
    (differs,) = re.findall(r"by more than (\S+) of the largest in its row", said(at))
    assert float(differs.replace("−", "-")) < 1e-6
