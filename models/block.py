"""One block of a stack: attention and feed-forward, each with a residual connection and norms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from jaxtyping import Bool
from torch import Tensor, nn

from models.attention import EarlierKeys, MultiHeadAttention
from models.feed_forward import FeedForward
from models.shapes import Bias, Mask, Memory, Rotation, Stream
from models.tap import NO_TAP, Tap

IDENTITY = nn.Identity()
Layer = Callable[[Stream], Stream]


class Residual(nn.Module):
    """The residual connection around one sub-layer: the only place that knows pre from post.

    With `pre` it norms what the layer reads (and in a sandwich, with `out_norm`, what it wrote);
    without, the sum.
    Sources: On Layer Normalization in the Transformer Architecture (Xiong et al. 2020), figure 1
    (pre); Attention Is All You Need, section 3.1 (post); CogView (Ding et al. 2021), section 2.4
    (sandwich).
    """

    def __init__(
        self, norm: nn.Module, pre: bool, out_norm: nn.Module | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.pre, self.norm = pre, norm
        self.out_norm = out_norm or nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Stream, layer: Layer, reads: Stream | None = None, tap: Tap = NO_TAP
    ) -> Stream:
        """The residual stream after the layer, which `reads` it, or an earlier one if parallel."""
        reads = x if reads is None else reads
        if self.pre:
            out = tap("out_norm", self.out_norm(layer(self.norm(reads))))
            return tap("add", x + self.dropout(out))
        return self.norm(tap("add", x + self.dropout(layer(reads))))

    @property
    def input_norm(self) -> nn.Module:
        """Applied to what the layer reads of the residual stream."""
        return self.norm if self.pre else IDENTITY


@dataclass(frozen=True, eq=False)
class StackContext:
    """What all blocks of a stack share in one forward pass."""

    masks: Mapping[int, Mask | None] = field(default_factory=lambda: {0: None})  # by window
    bias: Bias | None = None
    rotate: Rotation | None = None
    memory: Memory | None = None
    memory_mask: Bool[Tensor, "#b 1 1 s"] | None = None


Choose = Callable[[MultiHeadAttention, nn.Module, Stream, Tap], Callable[..., Stream]]
"""Chooses what runs as self-attention: for example `models.head_inputs.choose_head_inputs`."""


class Block(nn.Module):
    """Self-attention, cross-attention where there is a memory to attend to, feed-forward.

    `window` is how many keys self-attention attends to. In a parallel block the feed-forward
    layer reads what self-attention reads (GPT-J, Wang and Komatsuzaki 2021). `residual` makes
    the residual connection of a sub-layer.
    """

    def __init__(
        self,
        residual: Callable[[], Residual],
        self_attn: MultiHeadAttention,
        cross_attn: MultiHeadAttention | None = None,
        mlp: FeedForward | None = None,
        window: int = 0,
        parallel: bool = False,
        choose: Choose | None = None,
    ) -> None:
        super().__init__()
        self.window, self.parallel, self.choose = window, parallel, choose
        self.self_attn = self_attn
        self.self_residual = residual()
        self.cross_attn = cross_attn
        if cross_attn is not None:
            self.cross_residual = residual()
        self.mlp = mlp
        if mlp is not None:
            self.mlp_residual = residual()

    def forward(
        self,
        x: Stream,
        shared: StackContext,
        cache: Mapping[str, EarlierKeys] | None = None,
        tap: Tap = NO_TAP,
    ) -> Stream:
        """The residual stream after the block."""
        x = before = tap("resid_pre", x)
        x = self.attend(x, shared, cache or {}, tap)
        if self.mlp is not None:
            scope = tap.at("mlp")
            reads = scope("input", before if self.parallel else x)
            x = self.mlp_residual(x, partial(self.mlp, tap=scope), reads, scope)
        return tap("resid_post", x)

    def attend(
        self, x: Stream, shared: StackContext, cache: Mapping[str, EarlierKeys], tap: Tap
    ) -> Stream:
        """The residual stream after self-attention and cross-attention."""
        scope, past = tap.at("self_attn"), cache.get("self_attn")
        attention: Callable[..., Stream] = self.self_attn
        if self.choose is not None:
            attention = self.choose(self.self_attn, self.self_residual.input_norm, x, scope)
        mask, bias, rotate = shared.masks[self.window], shared.bias, shared.rotate
        layer = partial(attention, mask=mask, bias=bias, rotate=rotate, cache=past, tap=scope)
        x = tap("resid_mid", self.self_residual(x, layer, tap=scope))
        if self.cross_attn is not None:
            scope, past = tap.at("cross_attn"), cache.get("cross_attn")
            memory, mask = shared.memory, shared.memory_mask
            layer = partial(self.cross_attn, memory=memory, mask=mask, cache=past, tap=scope)
            x = tap("resid_cross", self.cross_residual(x, layer, tap=scope))
        return x
