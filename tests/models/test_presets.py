"""The documents' models: every parameter count they promise comes out."""

from __future__ import annotations

import pytest
import torch

from models import Transformer
from models.presets import (
    PRESETS,
    lecture_handout,
    notebook_tutorial,
    web_tutorial_classifier,
    web_tutorial_encoder,
)


def size_of(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_handout_s_attention() -> None:
    with torch.device("meta"):
        model = Transformer(lecture_handout())
    assert model.encoder is not None
    assert size_of(model.encoder.get_submodule("blocks.0.self_attn")) == 1_050_624


def test_the_notebook() -> None:
    model = Transformer(notebook_tutorial())
    assert model.n_parameters == 44_127_755
    ids = torch.randint(11, (2, 12), generator=torch.Generator().manual_seed(0))
    assert model(ids, ids).shape == (2, 12, 11)
    written = model.generate(ids, max_length=11)
    assert written.shape[0] == 2
    assert written.shape[1] <= 12


def test_the_web_tutorial_s_encoder() -> None:
    model = Transformer(web_tutorial_encoder())
    assert model.n_parameters == 520_064 == 320_000 + 4 * 49_984 + 128
    assert size_of(model.last_stack.blocks[0]) == 49_984
    assert model(torch.randint(5000, (2, 20))).shape == (2, 20, 64)


def test_the_web_tutorial_s_classifier() -> None:
    model = Transformer(web_tutorial_classifier())
    assert model.n_parameters == 389_218
    assert model(torch.randint(5000, (16, 20))).shape == (16, 2)
    assert [name for name, _ in model.head.named_parameters()] == [  # type: ignore[union-attr]
        "hidden.weight",
        "hidden.bias",
        "out.weight",
        "out.bias",
    ]


def test_the_readme_s_calls_as_they_are_written() -> None:
    model = Transformer(
        src_vocab_size=32000,
        tgt_vocab_size=32000,
        d_model=512,
        n_heads=8,
        n_layers=6,
        d_ff=2048,
        dropout=0.1,
    )
    assert model.n_parameters == 93_322_496
    source_sequences = torch.randint(32000, (2, 5))
    target_sequences = torch.randint(32000, (2, 4))
    outputs = model(source_sequences, target_sequences)
    assert outputs.shape == (2, 4, 32000)
    source_sequence = source_sequences[:1]
    model.generate(source_sequence, max_length=50, temperature=0.7)


def test_presets_are_models(subtests: pytest.Subtests) -> None:
    for name in PRESETS:
        with subtests.test(name=name):
            config = PRESETS[name]()
            assert config.fault() is None
            assert config.norm_position == "post"
