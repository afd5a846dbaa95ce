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
    for make in PRESETS.values():
        assert make().fault() is None
        assert make().norm_position == "post"


def test_the_web_tutorials_read_what_they_say() -> None:
    assert Transformer(web_tutorial_encoder())(torch.randint(5000, (2, 20))).shape == (2, 20, 64)
    assert Transformer(web_tutorial_classifier())(torch.randint(5000, (16, 20))).shape == (16, 2)


@pytest.mark.usefixtures("shapes_unchecked")
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
    source, target = torch.randint(32000, (2, 5)), torch.randint(32000, (2, 4))
    assert model(source, target).shape == (2, 4, 32000)
    written = model.generate(source[:1], max_length=5, temperature=0.7)
    assert written.shape == (1, 6), "as many as asked for behind the start token"
