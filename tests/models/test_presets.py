"""The documents' models: every parameter count they promise comes out."""

from __future__ import annotations

from typing import Any

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


def test_every_promised_count_comes_out() -> None:
    with torch.device("meta"):
        handout, notebook = Transformer(lecture_handout()), Transformer(notebook_tutorial())
        web = Transformer(web_tutorial_encoder())
        classifier = Transformer(web_tutorial_classifier())
    assert handout.encoder is not None
    assert size_of(handout.encoder.get_submodule("blocks.0.self_attn")) == 1_050_624
    assert notebook.n_parameters == 44_127_755
    assert web.n_parameters == 520_064 == 320_000 + 4 * 49_984 + 128
    assert size_of(web.last_stack.blocks[0]) == 49_984
    assert classifier.n_parameters == 389_218
    assert {make().norm_position for make in PRESETS.values()} == {"post"}


def test_a_model_is_made_of_plain_sizes() -> None:
    sizes: dict[str, Any] = {"d_model": 512, "n_heads": 8, "n_layers": 6, "d_ff": 2048}
    with torch.device("meta"):
        model = Transformer(src_vocab_size=32000, tgt_vocab_size=32000, **sizes)
    assert model.n_parameters == 93_322_496
    assert model.config.kind == "encoder-decoder"
