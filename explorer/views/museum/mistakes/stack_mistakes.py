"""Mistakes of whole blocks and stacks: a lost target, no padding mask, norms, and writing."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from explorer.views.museum.mistakes.leaf_copy import blocks, copied, reading_again, stacks
from models.attention import scaled_dot_product_attention
from models.block import Block, Residual, Surroundings
from models.cache import BlockCache
from models.config import RESIDUAL_NORMS, TransformerConfig
from models.generation import start_ids
from models.masking import both, causal_mask
from models.tap import NO_TAP, Tap
from models.transformer import Transformer


class LosesTarget(Block):
    """The notebook's decoder block, which looks at what the encoder gave instead of the target.

    Its own attention and the residual run over the encoder's output, so the target asks the
    questions of the cross-attention and enters nothing else. The document's code needs a
    target as long as the source; here the source's last row stands for rows that it lacks.
    A cache is left as it is, so who writes reads the whole target at every step.
    """

    def forward(
        self,
        x: Float[Tensor, "b t d"],
        around: Surroundings,
        cache: BlockCache | None = None,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "b t d"]:
        source = around.memory
        assert source is not None
        x = tap("resid_pre", x)
        value = self.self_residual(source, lambda s: self.look_back(s, around, tap))
        looked = self.look_at_source(x, source, value, around, tap.at("cross_attn"))
        rows = torch.arange(x.shape[1], device=x.device).clamp(max=source.shape[1] - 1)
        lost = tap("resid_mid", value[:, rows])
        x = tap("resid_cross", self.cross_residual(lost, lambda _: looked))
        if self.has_mlp:
            x = self.mlp_residual(x, lambda x: self.mlp(x, tap.at("mlp")))
        return tap("resid_post", x)

    def look_back(self, source: Tensor, around: Surroundings, tap: Tap) -> Tensor:
        """The target's mask over the source's tokens."""
        mask = both(causal_mask(source.shape[1], device=source.device), around.memory_mask)
        return self.self_attn(source, None, mask, tap=tap.at("self_attn"))

    def look_at_source(
        self, x: Tensor, source: Tensor, value: Tensor, around: Surroundings, tap: Tap
    ) -> Float[Tensor, "b t d"]:
        """Queries from the target, keys from the source, values from what it made of itself."""
        attention, residual = self.cross_attn, self.cross_residual
        asks = residual.read(x)
        q = tap("q", attention.q_norm(attention.split(attention.q_proj(asks))))
        k, _ = attention.keys_and_values(x, source, None, None)
        _, v = attention.keys_and_values(x, value, None, None)
        how = {"scale": attention.scale, "cap": attention.cap, "tap": tap}
        out, _ = scaled_dot_product_attention(q, k, v, around.memory_mask, **how)  # type: ignore[arg-type]
        return tap("out", attention.o_proj(out.transpose(1, 2).flatten(2)))


def lost_target(model: Transformer) -> Transformer:
    wrong = copied(model)
    assert wrong.decoder is not None
    for block in blocks(wrong.decoder):
        block.__class__ = LosesTarget  # the same parts, another pass
    return reading_again(wrong)


class NeverAppends(Transformer):
    """Writes as the notebook does: it reads only its last token, always at position 0.

    It does not know an end, takes one sequence at a time, and dropout stays as it is.
    """

    def generate(
        self, source: Int[Tensor, "b s"], max_length: int = 50, **how: Any
    ) -> Int[Tensor, "b t"]:
        if len(source) != 1:
            raise RuntimeError(
                f"a Tensor with {len(source)} elements cannot be converted to Scalar"
            )
        written = start_ids(self, source)
        memory = self.encode(source)
        for _ in range(max_length):
            last = self.decode(written[:, -1:], memory)[:, -1].argmax(-1)
            written = torch.cat((written, last[:, None]), 1)
        return written


def never_appends(model: Transformer) -> Transformer:
    wrong = copied(model)
    wrong.__class__ = NeverAppends
    return wrong


def no_padding_mask(model: Transformer) -> Transformer:
    """The same model, to which filler is a token like any other."""
    wrong = copied(model)
    wrong.config = model.config.replace(pad_id=None)
    return wrong


def other_norm_order(model: Transformer) -> Transformer:
    """The norms stand on the other side of every part: before it, or after the sum."""
    wrong = copied(model)
    for part in wrong.modules():
        if isinstance(part, Residual):
            part.norms = RESIDUAL_NORMS["post" if part.norms.input else "pre"]
    return wrong


def stream_sizes(model: Transformer, seen: dict[str, Tensor]) -> list[float]:
    """Root mean square of the stream after every block of the last stack."""
    stack = "decoder" if model.decoder is not None else "encoder"
    count = len(blocks(stacks(model)[-1]))
    streams = (seen[f"{stack}.{layer}.resid_post"] for layer in range(count))
    return [float(stream.square().mean().sqrt()) for stream in streams]


def needs_two_stacks(config: TransformerConfig) -> str | None:
    return None if config.kind == "encoder-decoder" else "it has no decoder beside an encoder"


def needs_padding(config: TransformerConfig) -> str | None:
    if config.kind == "decoder":
        return "a decoder never looks at filler behind its sentence"
    return "it has no token that fills up" if config.pad_id is None else None


def needs_one_norm(config: TransformerConfig) -> str | None:
    if config.norm_position == "sandwich":
        return "its norms stand on both sides"
    return "its parts share what they read" if config.parallel else None
