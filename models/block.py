"""One block of a stack: attention and feed-forward, each with a residual connection and norms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jaxtyping import Bool, Float
from torch import Tensor, nn

from models.attention import HeadInputs, MultiHeadAttention
from models.cache import BlockCache
from models.config import TransformerConfig
from models.feed_forward import FeedForward
from models.normalization import build_norm
from models.positional import Rotation
from models.shapes import Bias, Mask, Memory, Stream
from models.tap import NO_TAP, Tap


@dataclass(frozen=True, eq=False)
class StackContext:
    """What all blocks of a stack share in one forward pass.

    `masks` has one mask per window that occurs in the stack.
    """

    masks: Mapping[int, Mask | None] = field(default_factory=lambda: {0: None})
    bias: Bias | None = None
    rotate: Rotation | None = None
    memory: Memory | None = None
    memory_mask: Bool[Tensor, "#b 1 1 s"] | None = None


NO_NORM = nn.Identity()


class Residual(nn.Module):
    """The residual connection around one sub-layer, with the norms that its config asks for.

    x ← sum_norm(x + dropout(output_norm(sub_layer(input_norm(x))))), where the norms that
    `config.residual_norms` does not name are the identity. A parallel sub-layer reads an
    earlier residual stream (`reads`) than the one it is added to.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norms = config.residual_norms
        self.norm = build_norm(config)
        if self.norms.output is not None:
            self.out_norm = build_norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Stream,
        sub_layer: Callable[[Stream], Stream],
        reads: Stream | None = None,
        tap: Tap = NO_TAP,
    ) -> Stream:
        return self.write(x, sub_layer(self.read(x if reads is None else reads, tap)), tap)

    def read(self, x: Float[Tensor, "*b t d"], tap: Tap = NO_TAP) -> Float[Tensor, "*b t d"]:
        """What the sub-layer is given of the residual stream."""
        return tap("norm", self.input_norm(x))

    def write(self, x: Stream, out: Stream, tap: Tap = NO_TAP) -> Stream:
        """The residual stream after the sub-layer's output is added to it."""
        out = tap("out_norm", self.output_norm(out))
        return self.sum_norm(tap("add", x + self.dropout(out)))

    @property
    def input_norm(self) -> nn.Module:
        return self._norm(self.norms.input)

    @property
    def output_norm(self) -> nn.Module:
        return self._norm(self.norms.output)

    @property
    def sum_norm(self) -> nn.Module:
        return self._norm(self.norms.sum)

    def _norm(self, name: str | None) -> nn.Module:
        return NO_NORM if name is None else self.get_submodule(name)


def input_of_heads(x: Stream, n_heads: int, tap: Tap) -> HeadInputs | None:
    """The residual stream as q, k and v of each head read it, shown to the tap before the norm.

    None where the tap changes nothing, so that the heads share their input.
    """
    shared = x[:, None].expand(-1, n_heads, -1, -1)  # a view: n_heads times the same bytes
    shown = HeadInputs(*(tap(name, shared) for name in ("q_input", "k_input", "v_input")))
    return None if all(each is shared for each in shown) else shown


def build_attention(config: TransformerConfig) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        config.n_kv_heads,
        config.d_head,
        qkv_bias=config.qkv_bias,
        bias=config.has_out_bias,
        scale=config.scale,
        cap=config.attention_cap,
        qk_norm=config.norm_eps if config.qk_norm else None,
    )


class Block(nn.Module):
    """Self-attention, cross-attention where there is a memory to attend to, feed-forward.

    `window` is how many keys self-attention attends to. In a parallel block the feed-forward
    layer reads what self-attention reads (GPT-J, Wang and Komatsuzaki 2021).
    """

    def __init__(self, config: TransformerConfig, cross: bool = False, window: int = 0) -> None:
        super().__init__()
        self.window = window
        self.parallel = config.parallel
        self.has_cross = cross
        self.has_mlp = config.d_ff > 0
        self.self_attn = build_attention(config)
        self.self_residual = Residual(config)
        if self.has_cross:
            self.cross_attn = build_attention(config)
            self.cross_residual = Residual(config)
        if self.has_mlp:
            self.mlp = FeedForward(
                config.d_model,
                config.d_ff,
                config.activation,
                config.gated,
                config.has_mlp_bias,
                config.hidden_dropout,
            )
            self.mlp_residual = Residual(config)
            if config.shared_norm:
                self.mlp_residual.norm = self.self_residual.norm

    def forward(
        self, x: Stream, shared: StackContext, cache: BlockCache | None = None, tap: Tap = NO_TAP
    ) -> Stream:
        """The residual stream after the block."""
        x = before = tap("resid_pre", x)
        x = self.attend(x, shared, cache, tap)
        if self.has_mlp:
            scope = tap.at("mlp")
            reads = scope("input", before if self.parallel else x)
            x = self.mlp_residual(x, lambda x: self.mlp(x, scope), reads, scope)
        return tap("resid_post", x)

    def attend(self, x: Stream, shared: StackContext, cache: BlockCache | None, tap: Tap) -> Stream:
        """The residual stream after self-attention and cross-attention."""

        def self_attention(reads: Tensor | HeadInputs) -> Tensor:
            past, mask = None if cache is None else cache.self_attn, shared.masks[self.window]
            return self.self_attn(reads, None, mask, shared.bias, shared.rotate, past, scope)

        def cross_attention(x: Tensor) -> Tensor:
            past = None if cache is None else cache.cross_attn
            return self.cross_attn(x, shared.memory, shared.memory_mask, cache=past, tap=crossed)

        scope, crossed = tap.at("self_attn"), tap.at("cross_attn")
        residual = self.self_residual
        own = input_of_heads(x, self.self_attn.n_heads, scope)
        reads = residual.read(x, scope) if own is None else HeadInputs(*map(residual.read, own))
        x = tap("resid_mid", residual.write(x, self_attention(reads), scope))
        if self.has_cross:
            x = tap("resid_cross", self.cross_residual(x, cross_attention, tap=crossed))
        return x

    def remember(self, x: Stream, rotate: Rotation | None, cache: BlockCache) -> None:
        """Append the keys and values of these tokens to the cache: all that later ones need."""
        reads = self.self_residual.read(x)
        self.self_attn.keys_and_values(reads, None, rotate, cache.self_attn)
