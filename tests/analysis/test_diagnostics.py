"""Diagnostics find what was planted, and nothing in what is sound."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from explorer.analysis import diagnostics
from explorer.analysis.diagnostics import LEVELS, Diagnostic
from explorer.analysis.head_metrics import METRICS, HeadMetrics, join_layers, metrics_by_layer
from explorer.analysis.weight_statistics import summarized
from explorer.catalog import opened_model
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import run_text
from models import Transformer, TransformerConfig
from tests.served import ROOT

CHECKPOINTS = ROOT / "models" / "checkpoints"
TINY = TransformerConfig(d_model=32, n_heads=4, d_ff=64, n_layers=2)


def headers(**known: Any) -> Any:
    """Stands in for what is known of a folder before it is read."""
    nothing = dict.fromkeys(("missing", "unused", "misshapen", "copies", "unfollowed"), ())
    bare = {"tied": False, "weights": SimpleNamespace(wrapper="")}
    return SimpleNamespace(**{**nothing, **bare, **known})


def titles(found: list[Diagnostic], *levels: str) -> list[str]:
    return [finding.title for finding in found if finding.level in levels or not levels]


def shaken(config: TransformerConfig = TINY) -> Transformer:
    """A model that is neither fresh nor noise."""
    model, generator = Transformer(config), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            strong = torch.randn(parameter.shape[0], 1, generator=generator)
            if parameter.dim() == 1:
                parameter.add_(0.1 * strong[:, 0])
            else:
                parameter.add_(strong @ torch.randn(1, parameter.shape[1], generator=generator))
    return model


def of_model(model: Transformer) -> list[Diagnostic]:
    found = list(summarized(model))
    of_values, of_training = diagnostics.value_findings, diagnostics.training_findings
    dead = diagnostics.dead_head_findings(model)
    return [*of_values(found), *of_training(model, found), *dead]


def of_attention(opened: OpenModel) -> list[Diagnostic]:
    forward = run_text(opened, opened.example)
    measured = [join_layers([*metrics_by_layer(forward, each.name)]) for each in forward.parts]
    return diagnostics.attention_findings(measured)


def test_a_shipped_model_is_sound_and_an_untrained_one_is_not(subtests: pytest.Subtests) -> None:
    for folder in sorted(CHECKPOINTS.iterdir()):
        with subtests.test(folder=folder.name):
            trained = opened_model.open_checkpoint(folder, folder.name)
            assert titles(of_model(trained.model), "error", "warning", "note") == []
            assert titles(of_attention(trained)) == ["Selective attention"]
            fresh = Transformer(trained.config, seed=1)
            assert titles(of_model(fresh), "warning") == ["Looks untrained"]


def test_every_kind_of_fresh_model_looks_untrained(subtests: pytest.Subtests) -> None:
    configs: list[dict[str, Any]] = [
        {"norm": "rms", "bias": False, "qkv_bias": False, "gated": True},
        {"kind": "encoder-decoder", "norm_position": "post", "final_norm": False},
        {"tie_embeddings": True, "positions": "learned"},
        {"kind": "encoder", "head": "classifier", "d_classifier": 16},
        {"d_model": 8, "d_ff": 8, "n_heads": 1, "vocab_size": 9},
    ]
    for changes in configs:
        with subtests.test(changes=changes):
            config = TINY.replace(**changes)
            assert titles(of_model(Transformer(config)), "warning") == ["Looks untrained"]
            assert titles(of_model(shaken(config)), "error", "warning", "note") == []

    as_the_reference = Transformer(TINY)
    with torch.no_grad():
        for name, parameter in as_the_reference.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.02)
            if "embedding" in name:
                parameter[0] = 0  # the padding token
    assert titles(of_model(as_the_reference), "warning") == ["Looks untrained"]
    bare = Transformer(TINY.replace(norm="rms", bias=False, qkv_bias=False))
    (finding,) = diagnostics.training_findings(bare, list(summarized(bare)))
    assert finding.sentence.startswith("Every norm gain is exactly 1, and the singular values")


def test_norms_and_matrices_are_judged_apart() -> None:
    moved, lost = Transformer(TINY), shaken()
    with torch.no_grad():
        moved.get_parameter("decoder.norm.weight").mul_(1.01)
        for name, parameter in lost.named_parameters():
            if parameter.dim() == 1:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)
    assert titles(of_model(moved), "warning") == ["Random matrices"]
    assert titles(of_model(lost), "warning", "note") == ["Initial norms and biases"]


PLANTED: dict[str, tuple[str, Any, float]] = {
    "Not finite": ("decoder.norm.weight", slice(0, 1), math.inf),
    "All zero": ("decoder.blocks.1.mlp.up_proj.weight", slice(None), 0.0),
    "Constant": ("decoder.blocks.0.self_attn.k_proj.weight", slice(None), 0.02),
    "Zero norm gain": ("decoder.norm.weight", slice(None), 0.0),
    "Dead heads": ("decoder.blocks.1.self_attn.o_proj.weight", (slice(None), slice(8, 16)), 0.0),
}


def test_what_was_planted_is_found_and_named() -> None:
    assert titles(of_model(shaken()), "error", "warning") == []
    for title, (name, place, value) in PLANTED.items():
        model = shaken()
        with torch.no_grad():
            model.get_parameter(name)[place] = value
        assert title in titles(of_model(model), "error", "warning")
    (found,) = diagnostics.dead_head_findings(model)
    assert "all zero in decoder.blocks.1.self_attn, head 1" in found.sentence


def test_files_that_do_not_fit_are_errors_and_surplus_is_a_note() -> None:
    found = diagnostics.file_findings(
        headers(missing=("a.b",), misshapen=("c",), unused=("d", "e"))
    )
    assert titles(found, "error") == ["Missing tensors", "Shapes that disagree"]
    assert titles(found, "note") == ["Unexpected tensors"]
    assert "a.b" in found[0].sentence
    sound = diagnostics.file_findings(headers(tied=True))
    assert titles(sound) == ["Nothing missing", "Nothing unexpected", "Tied embeddings"]
    assert {finding.level for finding in sound} == {"fine"}
    assert "stored once" in sound[-1].sentence
    twice = diagnostics.file_findings(headers(tied=True, copies=("lm_head.weight",)))
    assert "stored again as lm_head.weight" in twice[-1].sentence
    found = diagnostics.file_findings(headers(unfollowed=("num_beams", "repetition_penalty")))
    (note,) = (finding for finding in found if finding.level == "note")
    assert note.title == "Settings not followed"
    assert "num_beams, repetition_penalty" in note.sentence
    (note,) = diagnostics.tokenizer_findings(("sp_model_kwargs",))
    assert "files also set sp_model_kwargs, which" in note.sentence
    found = diagnostics.file_findings(headers(weights=SimpleNamespace(wrapper="module.")))
    (note,) = (finding for finding in found if finding.level == "note")
    assert note.title == "Names with a prefix"
    for named, level in (("", "fine"), ("/a/b", "fine"), ("an/b", "note")):
        shown = named.replace("/a/", "…/")
        base = diagnostics.adapter_finding(named, Path("/c"), Path("/a/b"))
        assert (base.level, f" calls its model {shown}." in base.sentence) == (level, named != "")
    many = tuple(f"decoder.blocks.{n}.{'x' * 500}" for n in range(900))
    (finding, *_) = diagnostics.file_findings(headers(missing=many))
    assert "and 896 more" in finding.sentence
    assert len(finding.sentence) < 500
    assert titles(diagnostics.type_findings({"a": "F32", "b": "F32"}), "note") == []
    (finding,) = diagnostics.type_findings({"a": "F32", "b": "BF16", "c": "BF16"})
    assert finding.level == "note"
    assert "2 as BF16, 1 as F32" in finding.sentence


def test_uniform_attention_is_found() -> None:
    for spread, rows, title, level in [
        ([[0.999, 1.0], [0.995, 0.999]], 12, "Uniform attention", "warning"),
        ([[0.999, 1.0], [0.995, 0.5]], 12, "A uniform layer", "note"),
        ([[0.999, 0.2], [0.995, 0.5]], 12, "Selective attention", "fine"),
        ([[math.nan, math.nan]], 12, "Attention not checked", "note"),
        ([[1.0]], 2, "Attention not checked", "note"),
    ]:
        values = {name: torch.tensor(spread, dtype=torch.float64) for name in METRICS}
        heads = HeadMetrics("decoder.self_attn", values, rows, 0, {})
        (finding,) = diagnostics.attention_findings([heads])
        assert (finding.title, finding.level) == (title, level)
    lost = opened_model.open_checkpoint(CHECKPOINTS / "shakespeare", "lost")
    with torch.no_grad():
        for name, parameter in lost.model.named_parameters():
            if "q_proj" in name:
                parameter.zero_()
    assert titles(of_attention(lost), "warning") == ["Uniform attention"]
    mixed = [Diagnostic(level, level, "") for level in ("fine", "note", "error", "warning")]
    assert tuple(finding.level for finding in diagnostics.most_severe_first(mixed)) == LEVELS
