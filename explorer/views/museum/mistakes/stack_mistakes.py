"""Mistakes of blocks and of the whole model: a lost target, no padding mask, norms, generation."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from explorer.catalog.pass_budget import BoundedTransformer
from explorer.views.museum.mistakes.model_copy import copied, modules_of, stacks, uncached
from models.attention import EarlierKeys, scaled_dot_product_attention
from models.block import Block, Residual, StackContext
from models.config import TransformerConfig
from models.generation import start_ids
from models.masking import both, causal_mask
from models.model import Transformer
from models.shapes import Stream
from models.tap import Tap


class LosesTarget(Block):
    """The notebook's decoder block, whose residual stream is the encoder's output.

    The target gives the queries of cross-attention and enters nothing else. The document's
    code needs a target as long as the source; here the source's last row stands for rows
    that it lacks. The cache is left empty.
    """

    def attend(
        self, x: Stream, shared: StackContext, cache: Mapping[str, EarlierKeys], tap: Tap
    ) -> Stream:
        source = shared.memory
        assert source is not None
        own = both(causal_mask(source.shape[1], device=source.device), shared.memory_mask)
        scope = tap.at("self_attn")
        value = self.self_residual(source, lambda s: self.self_attn(s, mask=own, tap=scope))
        crossed = self.cross_attention_of(x, source, value, shared, tap.at("cross_attn"))
        rows = torch.arange(x.shape[1], device=x.device).clamp(max=source.shape[1] - 1)
        lost = tap("resid_mid", value[:, rows])
        return tap("resid_cross", self.cross_residual(lost, lambda _: crossed))

    def cross_attention_of(
        self, x: Tensor, source: Tensor, value: Tensor, shared: StackContext, tap: Tap
    ) -> Float[Tensor, "b t d"]:
        """Queries from the target, keys from the source, values from its self-attention."""
        attention = self.cross_attn
        assert attention is not None
        reads = self.cross_residual.input_norm(x)
        q = tap("q", attention.q_norm(attention.split(attention.q_proj(reads))))
        k, _ = attention.keys_and_values(source)
        _, v = attention.keys_and_values(value)
        how = {"scale": attention.scale, "cap": attention.cap, "tap": tap}
        out, _ = scaled_dot_product_attention(q, k, v, shared.memory_mask, **how)  # type: ignore[arg-type]
        return tap("out", attention.o_proj(out.transpose(1, 2).flatten(2)))


def lost_target(model: Transformer) -> Transformer:
    wrong = copied(model)
    assert wrong.decoder is not None
    for block in modules_of(wrong.decoder, Block):
        block.__class__ = LosesTarget
        block.parallel = False
    return uncached(wrong)


class NeverAppends(BoundedTransformer):
    """Generates as the notebook does: it reads only its last token, always at position 0.

    No token ends the text, it takes one sequence at a time, and dropout stays on.
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
    """The same model, to which padding is a token like any other."""
    wrong = copied(model)
    wrong.config, wrong.pad_id = model.config.replace(pad_id=None), None
    return wrong


def other_norm_order(model: Transformer) -> Transformer:
    """Post-norm where the model is pre-norm, and the reverse."""
    wrong = copied(model)
    for residual in modules_of(wrong, Residual):
        residual.pre = not residual.pre
    return wrong


def stream_sizes(model: Transformer, seen: dict[str, Tensor]) -> list[float]:
    """Root mean square of the residual stream after every block of the last stack."""
    stack = "decoder" if model.decoder is not None else "encoder"
    count = len(stacks(model)[-1].blocks)
    streams = (seen[f"{stack}.{layer}.resid_post"] for layer in range(count))
    return [float(stream.square().mean().sqrt()) for stream in streams]


def needs_two_stacks(config: TransformerConfig) -> str | None:
    return None if config.kind == "encoder-decoder" else "it has no decoder beside an encoder"


def needs_padding(config: TransformerConfig) -> str | None:
    if config.kind == "decoder":
        return "a decoder never attends to padding after its text"
    return "it has no padding token" if config.pad_id is None else None


def needs_one_norm(config: TransformerConfig) -> str | None:
    if config.norm_position == "sandwich":
        return "it has norms before and after each sub-layer"
    return (
        "its attention and feed-forward read the same residual stream" if config.parallel else None
    )
