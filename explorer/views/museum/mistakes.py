"""Mistakes that circulate in tutorials, each made in a copy of a model that shares its weights.

A mistake is a change of the copy (of a value, a module, or a module's inputs or output), and the
reason why a model cannot have it.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from explorer.analysis.position_schemes import doubled_sinusoids
from explorer.catalog.pass_budget import BoundedTransformer
from models.attention import EarlierKeys, MultiHeadAttention, scaled_dot_product_attention
from models.block import Block, Residual, StackContext
from models.config import TransformerConfig
from models.generation import start_ids
from models.masking import both, causal_mask
from models.model import Transformer
from models.positional import PositionalEncoding
from models.shapes import Stream
from models.tap import NO_TAP, Tap

HARD_CODED_HEADS = 8
FILLS = {"−1e9": -1e9, "−1e20": -1e20, "−∞": -math.inf}
"""The value of masked scores in the handout, in the notebook, and in the other two documents."""

Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class Mistake:
    """A change of a copy of a model; `misfit` says why a config cannot have it."""

    change: Callable[[Transformer], Transformer]
    misfit: Callable[[TransformerConfig], str | None]

    def make(self, model: Transformer) -> Transformer:
        """A copy of the model with the mistake."""
        return self.change(copy_of(model))


def copy_of(model: Transformer) -> Transformer:
    """A copy with its own modules; it shares the tensors of `model`, so it needs no memory."""
    shared = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared})


def modules_of(model: nn.Module | None, kind: type[Module]) -> Iterator[Module]:
    """The modules of this class, in the order in which they run."""
    assert model is not None
    return (module for module in model.modules() if isinstance(module, kind))


class WithoutCache(BoundedTransformer):
    """A model that generates without a cache, whose keys and values a mistake would change."""

    def generate(
        self, source: Int[Tensor, "b s"], max_length: int = 50, **options: Any
    ) -> Int[Tensor, "b t"]:
        return super().generate(source, max_length, **(options | {"use_cache": False}))


def without_cache(model: Transformer) -> Transformer:
    """The model generating without a cache, unless its mistake is how it generates."""
    return model if isinstance(model, NeverAppends) else WithoutCache(model)


# ---- positions ---------------------------------------------------------------------------------


def double_exponent(model: Transformer) -> Transformer:
    """Give the copy a position table of its own, with the doubled exponent."""
    for positions in modules_of(model, PositionalEncoding):
        _, max_len, d_model = positions.pe.shape
        positions.pe = doubled_sinusoids(torch.arange(max_len), d_model)[None].to(positions.pe)
    return model


def needs_sinusoids(config: TransformerConfig) -> str | None:
    if config.positions != "sinusoidal":
        return f"its positions are not sinusoidal but {config.positions}"
    if config.pairs == "halves":
        return "its table has all sines first, and the mistake needs each cosine beside its sine"
    return None


# ---- output ------------------------------------------------------------------------------------


def softmax_output(model: Transformer, dim: int = -1) -> Transformer:
    """Let the head end in a softmax, over the vocabulary or another dimension.

    Torch's default for three dimensions is the first.
    """
    assert model.head is not None
    model.head.register_forward_hook(lambda head, inputs, logits: logits.softmax(dim))
    return model


def needs_words(config: TransformerConfig) -> str | None:
    if config.head != "language-model":
        return "it has no logits of the vocabulary at every position"
    return None


def needs_logits(config: TransformerConfig) -> str | None:
    if config.score_function != "softmax":
        return "its output is not read by a softmax"
    return "it has no head" if config.head == "none" else None


# ---- two stacks --------------------------------------------------------------------------------


class LosesTarget(Block):
    """The notebook's decoder block, whose residual stream is the encoder's output.

    The target only makes the queries of cross-attention. The document's code needs a target as
    long as the source; here the source's last row stands for missing rows. The cache stays empty.
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
        x = self.cross_residual.input_norm(x)
        q = tap("q", attention.q_norm(attention.split(attention.q_proj(x))))
        k, _ = attention.keys_and_values(source)
        _, v = attention.keys_and_values(value)
        mask, scale, cap = shared.memory_mask, attention.scale, attention.cap
        out, _ = scaled_dot_product_attention(q, k, v, mask, scale=scale, cap=cap, tap=tap)
        return tap("out", attention.o_proj(out.transpose(1, 2).flatten(2)))


def lose_target(model: Transformer) -> Transformer:
    """Rebuild every block of the decoder from its own parts, wired as in the notebook."""
    assert model.decoder is not None
    for i, block in enumerate(model.decoder.blocks):
        assert isinstance(block, Block)
        residuals = (part for part in block.children() if isinstance(part, Residual))
        parts = block.self_attn, block.cross_attn, block.mlp
        model.decoder.blocks[i] = LosesTarget(residuals.__next__, *parts)
    return without_cache(model)


class NeverAppends(BoundedTransformer):
    """A model that generates as in the notebook: it reads only its last token, at position 0.

    No token ends the text, it takes one sequence at a time, and dropout stays on.
    """

    def generate(
        self, source: Int[Tensor, "b s"], max_length: int = 50, **options: Any
    ) -> Int[Tensor, "b t"]:
        if len(source) != 1:
            raise RuntimeError(
                f"a Tensor with {len(source)} elements cannot be converted to Scalar"
            )
        ids = start_ids(self, source)
        memory = self.encode(source)
        for _ in range(max_length):
            last = self.decode(ids[:, -1:], memory)[:, -1].argmax(-1)
            ids = torch.cat((ids, last[:, None]), 1)
        return ids


def needs_two_stacks(config: TransformerConfig) -> str | None:
    return None if config.kind == "encoder-decoder" else "it has no decoder beside an encoder"


# ---- heads -------------------------------------------------------------------------------------


class OneForAllHeads(nn.Linear):
    """One small projection for all heads, applied to each head's slice of the input."""

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        return super().forward(x.unflatten(-1, (-1, self.in_features))).flatten(-2)


def share_projection(model: Transformer) -> Transformer:
    """Give every head's queries, keys and values head 0's block for its own slice.

    Its bias comes with it, if it has one; the document's code has none.
    """
    for attention in modules_of(model, MultiHeadAttention):
        width = attention.d_head
        for name in ("q_proj", "k_proj", "v_proj"):
            whole = attention.get_submodule(name)
            small = OneForAllHeads(width, width, whole.bias is not None, device="meta")
            for part, values in whole.named_parameters():
                first = values[:width, :width] if values.dim() == 2 else values[:width]
                copied = nn.Parameter(first.detach().clone(), values.requires_grad)
                small.register_parameter(part, copied)
            attention.register_module(name, small)
    return model


def needs_even_slices(config: TransformerConfig) -> str | None:
    if config.kv_heads != config.n_heads:
        return "its heads share keys and values, so it has no slice for every head"
    if config.n_heads * config.head_width != config.d_model or config.n_heads == 1:
        return "its heads are not slices of the residual stream"
    return None


def fix_heads(model: Transformer) -> Transformer:
    """Give all attention of the decoder eight heads, whatever the config says.

    The weights stay the same; they are only split into other slices.
    """
    for attention in modules_of(model.decoder, MultiHeadAttention):
        attention.n_heads = attention.n_kv_heads = HARD_CODED_HEADS
        attention.d_head = model.config.d_model // HARD_CODED_HEADS
        attention.scale = attention.d_head**-0.5
    return model


def needs_other_than_eight(config: TransformerConfig) -> str | None:
    if config.kind != "encoder-decoder":
        return "it has no decoder beside an encoder"
    if config.n_heads == HARD_CODED_HEADS:
        return "it has the eight heads that are hard-coded, so nothing would change"
    if config.d_model % HARD_CODED_HEADS or config.n_heads * config.head_width != config.d_model:
        return f"its width {config.d_model} cannot be cut into eight heads"
    if config.qk_norm:
        return "its norms of queries and keys are as wide as the heads it has"
    if config.attention_scale is not None:
        return "its scale is not 1/√d_k to begin with"
    if config.kv_heads != config.n_heads or config.positions in ("alibi", "relative", "rotary"):
        return "its positions or shared keys depend on the number of its heads"
    return None


def scale_by_width(model: Transformer) -> Transformer:
    """Scale by 1/√d_model instead of 1/√d_k, as if the document's `d_x` were the width of x."""
    for attention in modules_of(model, MultiHeadAttention):
        attention.scale = 1 / math.sqrt(model.config.d_model)
    return model


def needs_several_heads(config: TransformerConfig) -> str | None:
    if config.attention_scale is not None:
        return "its scale is not 1/√d_k to begin with"
    return "with one head d_k is d_model" if config.head_width == config.d_model else None


# ---- masks -------------------------------------------------------------------------------------


def ignore_padding(model: Transformer) -> Transformer:
    """Let the model treat padding like any other token."""
    model.config, model.pad_id = model.config.replace(pad_id=None), None
    return model


def needs_padding(config: TransformerConfig) -> str | None:
    if config.kind == "decoder":
        return "a decoder never attends to padding after its text"
    return "it has no padding token" if config.pad_id is None else None


class FilledWeights(Tap):
    """A tap that recomputes the weights with masked scores as a large negative number."""

    def __init__(self, tap: Tap, fill: float) -> None:
        self.tap, self.fill = tap, fill
        self.values: dict[str, Tensor] = {}

    def wants(self, name: str) -> bool:
        return name in ("mask", "weights") or self.tap.wants(name)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if name == "weights":
            value = filled_weights(self.values["masked"], self.values["mask"], self.fill)
        self.values[name] = value = self.tap(name, value)
        return value


def filled_weights(
    scores: Float[Tensor, "*b k"], mask: Tensor, fill: float
) -> Float[Tensor, "*b k"]:
    """Softmax of the scores, with `fill` where the mask is False.

    RuntimeError if the type of the scores cannot hold it: half precision ends at 65,504.
    """
    return scores.masked_fill(~mask, fill).softmax(-1)


def change_inputs(
    model: Transformer, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Transformer:
    """Let every attention be called with changed arguments."""
    for attention in modules_of(model, MultiHeadAttention):
        attention.register_forward_pre_hook(
            lambda attention, inputs, how: (inputs, how | change(how)), with_kwargs=True
        )
    return model


def fill_masked(model: Transformer, fill: float = FILLS["−1e9"]) -> Transformer:
    return change_inputs(model, lambda how: {"tap": FilledWeights(how["tap"], fill)})


def needs_padded_rows(config: TransformerConfig) -> str | None:
    return "it has no padding, so none of its rows is all masked" if config.pad_id is None else None


def drop_weights(model: Transformer) -> Transformer:
    """Call attention without its mask, and show no tap the weights. A cache would be causal."""
    return without_cache(change_inputs(model, lambda how: {"mask": None, "tap": NO_TAP}))


def needs_masks(config: TransformerConfig) -> str | None:
    return None if "decoder" in config.stacks else "it masks nothing but padding"


# ---- norms -------------------------------------------------------------------------------------


def reverse_norms(model: Transformer) -> Transformer:
    """Make a pre-norm model post-norm, and the reverse."""
    for residual in modules_of(model, Residual):
        residual.pre = not residual.pre
    return model


def needs_one_norm(config: TransformerConfig) -> str | None:
    if config.norm_position == "sandwich":
        return "it has norms before and after each sub-layer"
    return (
        "its attention and feed-forward read the same residual stream" if config.parallel else None
    )


MISTAKES = {
    "doubled-exponent": Mistake(double_exponent, needs_sinusoids),
    "batch-softmax": Mistake(partial(softmax_output, dim=0), needs_words),
    "lost-target": Mistake(lose_target, needs_two_stacks),
    "never-appends": Mistake(NeverAppends, needs_two_stacks),
    "shared-projection": Mistake(share_projection, needs_even_slices),
    "fixed-heads": Mistake(fix_heads, needs_other_than_eight),
    "no-padding-mask": Mistake(ignore_padding, needs_padding),
    "softmax-twice": Mistake(softmax_output, needs_logits),
    "filled-row": Mistake(fill_masked, needs_padded_rows),
    "dropped-weights": Mistake(drop_weights, needs_masks),
    "norm-order": Mistake(reverse_norms, needs_one_norm),
    "wrong-scale": Mistake(scale_by_width, needs_several_heads),
} | {
    f"filled-row {name}": Mistake(partial(fill_masked, fill=fill), needs_padded_rows)
    for name, fill in FILLS.items()
}
"""By name. Two more of the documents' fourteen are a printed number and random labels."""
