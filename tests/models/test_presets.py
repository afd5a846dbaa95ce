"""The documents' models: every parameter count they promise comes out."""

from typing import Any

import torch
from torch import nn

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


def test_the_paper_ties_its_three_matrices_and_drops_only_what_enters_the_residual_stream() -> None:
    """Sections 3.4 and 5.4, and 65 million parameters in table 3."""
    with torch.device("meta"):
        paper = Transformer(PRESETS["paper"]())
    assert paper.n_parameters == 37_000 * 512 + 44_138_496 == 63_082_496
    small: dict[str, Any] = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 32, "dropout": 0.5}
    model = Transformer(PRESETS["paper"](11, **small)).train()
    assert model.encoder is not None
    assert model.decoder is not None
    assert model.encoder.embedding is model.decoder.embedding
    assert [name for name, _ in model.named_parameters() if name.startswith("head")] == []
    shares = {name: m.p for name, m in model.named_modules() if isinstance(m, nn.Dropout)}
    dropped = {name for name, share in shares.items() if share}
    residual = "self_residual cross_residual mlp_residual".split()
    assert dropped == {
        *(f"{stack}.dropout" for stack in ("encoder", "decoder")),
        *(f"decoder.blocks.0.{each}.dropout" for each in residual),
        *(f"encoder.blocks.0.{each}.dropout" for each in ("self_residual", "mlp_residual")),
    }
    assert {shares[name] for name in dropped} == {0.5}
    documents = Transformer(PRESETS["lecture handout"]().replace(**small))
    assert documents.get_submodule("encoder.blocks.0.mlp.dropout").p == 0.5, "as they were"


def test_a_model_is_made_of_plain_sizes() -> None:
    sizes: dict[str, Any] = {"d_model": 512, "n_heads": 8, "n_layers": 6, "d_ff": 2048}
    with torch.device("meta"):
        model = Transformer(src_vocab_size=32000, tgt_vocab_size=32000, **sizes)
    assert model.n_parameters == 93_322_496
    assert model.config.kind == "encoder-decoder"
