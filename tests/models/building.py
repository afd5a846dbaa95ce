"""Small models for the tests: every size distinct, every parameter shaken."""

from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from models.config import TransformerConfig
from models.transformer import Transformer

Model = TypeVar("Model", bound=nn.Module)

SMALL = TransformerConfig(
    vocab_size=13, d_model=12, n_layers=2, n_heads=3, d_ff=20, max_len=16, pad_id=0
)
"""A vocabulary of 13, three heads of width 4: no two sizes can be taken for each other."""


def config_of(kind: str = "decoder", **changes: Any) -> TransformerConfig:
    """SMALL as another kind; an encoder-decoder has stacks of unequal depth and vocabulary."""
    if kind == "encoder-decoder":
        changes = {"src_vocab_size": 17, "n_encoder_layers": 1} | changes
    return SMALL.replace(kind=kind, **changes)


def shake(model: Model, by: float = 0.3, seed: int = 1) -> Model:
    """Noise on every parameter: zero biases and unit norms would hide a mistake."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise.to(parameter.dtype), alpha=by)
    return model


def shaken(config: TransformerConfig, dtype: torch.dtype = torch.float64) -> Transformer:
    """A model with no special value in it, in eval mode."""
    return shake(Transformer(config).to(dtype)).eval()


def ids_of(batch: int, length: int, vocab_size: int = 13, seed: int = 2) -> Tensor:
    """Random ids without 0, the padding of SMALL, and without 1 and 2."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, vocab_size, (batch, length), generator=generator)


def keep_of_lengths(lengths: list[int], width: int, side: str = "right") -> Tensor:
    """True on the real tokens of sequences of these lengths, padded on one side."""
    here = torch.arange(width)[None]
    kept = torch.tensor(lengths)[:, None]
    return here < kept if side == "right" else here >= width - kept


def inputs_of(config: TransformerConfig, batch: int = 3, length: int = 6) -> tuple[Tensor, ...]:
    """What a model of this config reads: ids, or source and (shorter) target."""
    if config.kind != "encoder-decoder":
        return (ids_of(batch, length, config.vocab_size),)
    source = ids_of(batch, length, config.src_vocab_size or config.vocab_size)
    return source, ids_of(batch, length - 1, config.vocab_size, seed=3)


def keeps_of(
    config: TransformerConfig, side: str, batch: int = 3, length: int = 6
) -> dict[str, Any]:
    """Keyword arguments that pad all but the first sequence; the last one keeps nothing."""
    if side == "none":
        return {}
    lengths = [length, length - 3] + [0] * (batch - 2)
    if config.kind != "encoder-decoder":
        return {"keep": keep_of_lengths(lengths, length, side)}
    shorter = [max(0, each - 1) for each in lengths]
    return {
        "source_keep": keep_of_lengths(lengths, length, side),
        "target_keep": keep_of_lengths(shorter, length - 1, side),
    }


def weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy of everything that a training may change."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def assert_equal_weights(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name
