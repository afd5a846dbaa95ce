"""The doctor finds what was planted, and nothing in what is sound."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from explorer import library
from explorer.analysis import doctor
from explorer.analysis.doctor import LEVELS, Finding
from explorer.analysis.heads import STATISTICS, HeadStatistics, joined, layers
from explorer.analysis.weights import survey
from explorer.reading import read
from models import Transformer, TransformerConfig, load_checkpoint
from tests.served import ROOT

SHIPPED = sorted((ROOT / "models" / "checkpoints").iterdir())
TINY = TransformerConfig(d_model=32, n_heads=4, d_ff=64, n_layers=2)


@dataclass(frozen=True)
class Headers:
    """Stands in for what is known of a folder before it is read."""

    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    tied: bool = False
    unfollowed: tuple[str, ...] = ()


def titles(found: list[Finding], *levels: str) -> list[str]:
    return [finding.title for finding in found if finding.level in levels or not levels]


def shaken(config: TransformerConfig = TINY) -> Transformer:
    """A model that is neither fresh nor noise."""
    model = Transformer(config)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            size = parameter.shape[0]
            strong = torch.randn(size, 1, generator=generator)
            if parameter.dim() == 1:
                parameter.add_(0.1 * strong[:, 0])
            else:
                parameter.add_(strong @ torch.randn(1, parameter.shape[1], generator=generator))
    return model


def of_model(model: Transformer) -> list[Finding]:
    found = list(survey(model))
    return [
        *doctor.of_numbers(found),
        *doctor.of_training(model, found),
        *doctor.of_heads(model),
    ]


def test_a_shipped_model_is_sound_and_a_fresh_one_of_its_config_is_not(
    subtests: pytest.Subtests,
) -> None:
    for folder in SHIPPED:
        with subtests.test(folder=folder):
            trained = load_checkpoint(folder)
            assert titles(of_model(trained.model), "error", "warning", "note") == []
            for seed in range(3):
                fresh = Transformer(trained.config, seed=seed)
                assert titles(of_model(fresh), "warning") == ["Looks untrained"]


def test_the_attention_of_a_shipped_model_chooses(subtests: pytest.Subtests) -> None:
    for folder in SHIPPED:
        with subtests.test(folder=folder):
            opened = library.opened_from(folder, folder.name)
            reading = read(opened, opened.example)
            found = [joined(list(layers(reading, part.name))) for part in reading.parts]
            assert titles(doctor.of_attention(found)) == ["Attention chooses"]


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
            fresh = Transformer(TINY.replace(**changes))
            assert titles(of_model(fresh), "warning") == ["Looks untrained"]
            assert (
                titles(of_model(shaken(TINY.replace(**changes))), "error", "warning", "note") == []
            )


def test_only_what_there_is_is_called_untouched() -> None:
    bare = Transformer(TINY.replace(norm="rms", bias=False, qkv_bias=False))
    (finding,) = doctor.of_training(bare, list(survey(bare)))
    assert finding.sentence.startswith("Every norm gain is exactly 1, and the spectra")


def test_the_reference_librarys_fresh_weights_look_untrained() -> None:
    model = Transformer(TINY)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.02)
                if "embedding" in name:
                    parameter[0] = 0  # the padding token
    assert titles(of_model(model), "warning") == ["Looks untrained"]


def test_norms_alone_do_not_make_a_model_trained() -> None:
    model = Transformer(TINY)
    with torch.no_grad():
        model.get_parameter("decoder.norm.weight").mul_(1.01)
    assert titles(of_model(model), "warning") == ["Matrices like noise"]


def test_lost_norms_and_biases_are_noted() -> None:
    model = shaken()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)
    assert titles(of_model(model), "warning", "note") == ["Norms and biases as fresh"]


PLANTED: dict[str, tuple[str, str, slice | tuple[slice, slice], float]] = {
    "a NaN": ("Not finite", "head.bias", slice(3, 4), math.nan),
    "an infinity": ("Not finite", "decoder.norm.weight", slice(0, 1), math.inf),
    "a zero matrix": ("All zero", "decoder.blocks.1.mlp.up_proj.weight", slice(None), 0.0),
    "a constant matrix": (
        "Constant",
        "decoder.blocks.0.self_attn.k_proj.weight",
        slice(None),
        0.02,
    ),
    "a norm of zeros": ("A norm that is shut", "decoder.norm.weight", slice(None), 0.0),
    "a dead head": (
        "Dead heads",
        "decoder.blocks.1.self_attn.o_proj.weight",
        (slice(None), slice(8, 16)),
        0.0,
    ),
}


def plant(model: Transformer, planted: str) -> str:
    """Spoil the model; the title of what the doctor should find."""
    title, name, place, value = PLANTED[planted]
    with torch.no_grad():
        model.get_parameter(name)[place] = value
    return title


def test_what_was_planted_is_found_and_named(subtests: pytest.Subtests) -> None:
    for planted in PLANTED:
        with subtests.test(planted=planted):
            model = shaken()
            assert titles(of_model(model), "error", "warning") == []
            title = plant(model, planted)
            assert title in titles(of_model(model), "error", "warning")


def test_a_dead_head_is_named() -> None:
    model = shaken()
    plant(model, "a dead head")
    (found,) = doctor.of_heads(model)
    assert "decoder.blocks.1.self_attn, head 1 is all zero" in found.sentence


def test_files_that_do_not_fit_are_errors_and_surplus_is_a_note() -> None:
    found = doctor.of_files(Headers(missing=("a.b",), misshapen=("c",), unused=("d", "e")))
    assert titles(found, "error") == ["Missing tensors", "Shapes that disagree"]
    assert titles(found, "note") == ["Unexpected tensors"]
    assert "a.b" in found[0].sentence
    sound = doctor.of_files(Headers(tied=True))
    assert titles(sound) == ["Nothing missing", "Nothing unexpected", "Tied embeddings"]
    assert {finding.level for finding in sound} == {"fine"}
    assert "stored once" in sound[-1].sentence
    twice = doctor.of_files(Headers(tied=True, copies=("lm_head.weight",)))
    assert "stored again as lm_head.weight" in twice[-1].sentence


def test_settings_that_are_not_followed_are_named() -> None:
    found = doctor.of_files(Headers(unfollowed=("num_beams", "repetition_penalty")))
    assert titles(found, "note") == ["Settings not followed"]
    assert "num_beams, repetition_penalty" in next(f.sentence for f in found if f.level == "note")


def test_many_and_long_names_are_cut() -> None:
    names = tuple(f"decoder.blocks.{n}.{'x' * 500}" for n in range(900))
    (finding, *_) = doctor.of_files(Headers(missing=names))
    assert "and 896 more" in finding.sentence
    assert len(finding.sentence) < 500


def test_mixed_types_are_noted() -> None:
    assert titles(doctor.of_types({"a": "F32", "b": "F32"}), "note") == []
    (finding,) = doctor.of_types({"a": "F32", "b": "BF16", "c": "BF16"})
    assert finding.level == "note"
    assert "2 as BF16, 1 as F32" in finding.sentence


def heads(spread: list[list[float]], rows: int = 12) -> HeadStatistics:
    values = {name: torch.tensor(spread, dtype=torch.float64) for name in STATISTICS}
    return HeadStatistics("decoder.self_attn", values, rows, 0)


def test_uniform_attention_is_found(subtests: pytest.Subtests) -> None:
    for spread, title, level in [
        ([[0.999, 1.0], [0.995, 0.999]], "Attention uniform", "warning"),
        ([[0.999, 1.0], [0.995, 0.5]], "A layer that does not choose", "note"),
        ([[0.999, 0.2], [0.995, 0.5]], "Attention chooses", "fine"),
        ([[math.nan, math.nan]], "Attention not judged", "note"),
    ]:
        with subtests.test(spread=spread):
            (finding,) = doctor.of_attention([heads(spread)])
            assert (finding.title, finding.level) == (title, level)


def test_a_short_text_is_not_judged() -> None:
    (finding,) = doctor.of_attention([heads([[1.0]], rows=2)])
    assert finding.title == "Attention not judged"


def test_a_model_whose_queries_were_lost_looks_everywhere_equally() -> None:
    opened = library.opened_from(ROOT / "models" / "checkpoints" / "shakespeare", "lost")
    with torch.no_grad():
        for name, parameter in opened.model.named_parameters():
            if "q_proj" in name:
                parameter.zero_()
    reading = read(dataclasses.replace(opened), opened.example)
    found = [joined(list(layers(reading, part.name))) for part in reading.parts]
    assert titles(doctor.of_attention(found), "warning") == ["Attention uniform"]


def test_the_worst_comes_first() -> None:
    mixed = [Finding(level, level, "") for level in ("fine", "note", "error", "warning", "fine")]
    assert [finding.level for finding in doctor.in_order(mixed)] == [
        "error",
        "warning",
        "note",
        "fine",
        "fine",
    ]
    assert set(LEVELS) == {finding.level for finding in mixed}
