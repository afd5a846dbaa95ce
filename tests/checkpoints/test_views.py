"""The Checkpoints page without a browser: every view of every kind of model, and bad folders."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest

from explorer.analysis import weights
from explorer.checkpoints import norms
from explorer.checkpoints.choosing import VIEWS
from explorer.checkpoints.norms import short
from explorer.numbers import megabytes, three
from models import Transformer, TransformerConfig
from tests import apps
from tests.apps import said, views
from tests.grids import grid
from tests.shelf import NAMES, shelf

WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shelf(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def folder(sound: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(sound))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    return sound


@pytest.fixture
def spoiled(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A shelf of one's own, to do damage on."""
    own = shelf(tmp_path / "own")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(own))
    return own


def page(**address: str) -> AppTest:
    return apps.page("models/checkpoints", **address)


def change(folder: Path, **tensors: torch.Tensor | None) -> None:
    """Put tensors into a file of weights, or take them out."""
    kept = load_file(folder / WEIGHTS)
    for name, tensor in tensors.items():
        if tensor is None:
            kept.pop(name)
        else:
            kept[name] = tensor
    save_file(kept, folder / WEIGHTS)


@grid("model, view", NAMES, VIEWS)
def test_every_view_of_every_kind_of_model(folder: Path, view: str, model: str) -> None:
    at = page(model=model, show=view)
    assert at.session_state["show"] == view
    assert at.session_state["model"] == model


@grid("part, view", ["Encoder", "Decoder", "Cross"], ["Weights", "Spectra", "Heads"])
def test_the_views_follow_the_sidebar(folder: Path, view: str, part: str) -> None:
    at = page(model="translation", show=view, part=part)
    stack = "encoder" if part == "Encoder" else "decoder"
    attention = "cross_attn" if part == "Cross" else "self_attn"
    if view != "Heads":
        assert f"`{stack}.blocks.0.{attention}.q_proj.weight`" in said(at)
    else:
        statistics = next(c for c in at.segmented_control if c.key == "statistic").options
        assert ("Distance" in statistics) == (part != "Cross")


def test_only_the_chosen_view_is_computed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("nobody asked for this")

    monkeypatch.setattr(norms, "survey", never)
    for view in ("Ledger", "Weights", "Spectra", "Heads"):
        page(model="reverse", show=view)


def test_heavy_work_is_done_once_for_a_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def counting(name: str, tensor: torch.Tensor) -> weights.Summary:
        counted.append(name)
        return summary(name, tensor)

    summary = weights.summary
    monkeypatch.setattr(weights, "summary", counting)
    (folder / "letters" / WEIGHTS).touch()  # opened anew
    page(model="letters", show="Norms")
    once = len(counted)
    assert once == len(set(counted)) > 0
    page(model="letters", show="Doctor")
    page(model="letters", show="Norms", tensors="Biases")
    assert len(counted) == once


def test_the_shelf_says_how_big_a_model_is(folder: Path) -> None:
    at = page()
    size = (folder / "letters" / WEIGHTS).stat().st_size
    assert megabytes(size) in [text.value for text in at.text]
    assert "ours" in [text.value for text in at.text]


@pytest.mark.usefixtures("folder")
def test_the_ledger_says_how_it_adds_up_and_why_nothing_is_exported() -> None:
    at = page(model="translation", ledger="paper")
    assert "what is below adds up to one layer" in said(at)
    fault = next(each for each in at.caption if "cannot be exported" in each.value)
    assert fault.value == "It cannot be exported: no published family has this shape."
    nearest = fault.help.replace("\\", "").replace("\u2060", "")
    assert nearest.startswith("The nearest is ")
    assert "kind is decoder, here encoder-decoder" in nearest


def test_a_tensor_is_chosen_by_the_address_and_kept_from_layer_to_layer(folder: Path) -> None:
    at = page(model="letters", show="Weights", tensor="mlp.up_proj.weight", layer="0")
    assert "`decoder.blocks.0.mlp.up_proj.weight`" in said(at)
    control = next(c for c in at.segmented_control if c.key == "layer")
    control.set_value(1).run()
    assert "`decoder.blocks.1.mlp.up_proj.weight`" in said(at)
    at.selectbox(key="tensor").set_value("head.weight").run()
    assert "`head.weight`" in said(at)
    assert not at.exception


def test_a_tensor_that_a_model_lacks_is_replaced(folder: Path) -> None:
    at = page(model="translation", show="Weights", tensor="cross_attn.v_proj.bias", part="Cross")
    assert "`decoder.blocks.0.cross_attn.v_proj.bias`" in said(at)
    at.selectbox(key="model").set_value("letters").run()
    assert not at.exception
    assert "`decoder.blocks.0.self_attn.q_proj.weight`" in said(at)
    at = page(show="Weights", tensor="../../etc/passwd", part="Encoder")
    assert "`encoder.blocks.0.self_attn.q_proj.weight`" in said(at)
    assert "“Tensor” has no “../../etc/passwd” here; showing self_attn.q_proj.weight." in said(at)
    assert "Each cell is" in said(page(show="Weights", cell="Median"))


def test_the_picture_says_what_a_cell_is_and_whose_rows_they_are(folder: Path) -> None:
    at = page(model="letters", show="Weights", head="2")
    assert "Each cell is one weight. Rows 8–11 are head 2." in said(at)
    assert "weights_picture" in views(at)
    at = page(
        model="letters", show="Weights", tensor="decoder.embedding.weight", cell="Largest |w|"
    )
    assert "Each cell is the largest size |w| of 3 × 1 weights" in said(at)


def test_a_vector_has_no_spectrum(folder: Path) -> None:
    at = page(model="letters", show="Spectra")
    options = at.selectbox(key="tensor").options
    assert options
    assert not any(option.endswith("bias") for option in options)
    assert "Exact: a singular value decomposition" in said(at)


def test_norms_of_each_kind(folder: Path, subtests: pytest.Subtests) -> None:
    for kind in ["Matrices", "Norm gains", "Biases"]:
        with subtests.test(kind=kind):
            at = page(model="translation", show="Norms", tensors=kind)
            assert views(at) >= {"norms_encoder", "norms_decoder"}
            assert f"**{kind}: root mean square**" in said(at)


def test_parts_of_a_layer_have_names_of_their_own() -> None:
    model = Transformer(TransformerConfig(kind="encoder-decoder", norm_position="sandwich"))
    assert model.decoder is not None
    names = [name for name, _ in model.decoder.blocks[0].named_parameters()]
    assert len({short(name) for name in names}) == len(names) > 20
    assert short("cross_attn.q_proj.bias") == "cross.q_proj.bias"
    assert short("self_residual.norm.weight") == "attn.norm"


def test_heads_need_a_text_and_the_doctor_does_without(folder: Path) -> None:
    for view, sentence in (
        ("Heads", "There is nothing to read yet: type a sentence."),
        ("Doctor", "There is nothing to read yet: type a sentence."),
    ):
        at = page(model="reverse", show=view)
        at.text_input(key="text").set_value(" ").run()
        assert not at.exception
        assert sentence in said(at)
    assert "**Looks untrained**" in said(at)


def test_the_doctor_names_what_is_wrong_with_a_model_that_opens(spoiled: Path) -> None:
    name = "decoder.blocks.0.self_attn.k_proj.weight"
    change(spoiled / "letters", **{name: torch.zeros(16, 16)})
    change(spoiled / "letters", **{"**b** <b> $x$": torch.zeros(2)})
    at = page(model="letters", show="Doctor")
    assert "**All zero**" in said(at)
    assert f"Only zeros stand in {name}" in said(at)
    assert "**Unexpected tensors**" in said(at)
    assert not any("<b>" in prose.value for prose in [*at.markdown, *at.caption])
    for view in ("Weights", "Spectra", "Norms", "Heads"):
        assert not page(model="letters", show=view, tensor="self_attn.k_proj.weight").exception


def test_a_model_that_lacks_a_tensor_is_examined_instead(
    spoiled: Path, subtests: pytest.Subtests
) -> None:
    missing = "decoder.blocks.1.mlp.up_proj.weight"
    change(spoiled / "letters", **{missing: None, "surplus": torch.zeros(2)})
    for view in VIEWS:
        with subtests.test(view=view):
            at = page(model="letters", show=view)
            assert "cannot be opened" in said(at)
            assert "**Missing tensors**" in said(at)
            assert f"The config asks for {missing}" in said(at)
            assert "**Unexpected tensors**" in said(at)
            at.selectbox(key="model").set_value("reverse").run()
            assert "cannot be opened" not in said(at)


def test_a_folder_that_is_no_model_says_why_when_asked(spoiled: Path) -> None:
    (spoiled / "letters" / "config.json").write_text(json.dumps({"kind": "banana"}))
    at = page()
    assert "banana" not in said(at)
    at.button(key="why_letters").click().run()
    assert "banana" in said(at)
    assert "**Files that cannot be read**" in said(at)
    at.button(key="why_letters").click().run()
    assert "banana" not in said(at)


def test_numbers_have_three_digits() -> None:
    said = {0.0: "0", 1.0: "1.00", 0.98765: "0.988", 12.34: "12.3", 123.4: "123", 1234.0: "1,230"}
    said |= {-0.00512: "−0.00512", 9.999: "10.0", 0.0000004321: "4.32e−7", math.inf: "∞"}
    for value, text in said.items():
        assert three(value) == text
    assert three(math.nan) == "no value"
    assert megabytes(548_105_171) == "548 MB"
