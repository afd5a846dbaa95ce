"""One layer of a stack: attention, a look at the source where there is one, feed-forward."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor, nn

from models.attention import Bias, Mask, MultiHeadAttention
from models.cache import BlockCache
from models.config import TransformerConfig
from models.feed_forward import FeedForward
from models.normalization import NORMS
from models.tap import NO_TAP, Tap


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What every block of a stack shares in one pass."""

    mask: Mask | None = None
    bias: Bias | None = None
    rotate: Callable[[Tensor], Tensor] | None = None
    memory: Float[Tensor, "b s d"] | None = None
    memory_mask: Bool[Tensor, "#b 1 1 s"] | None = None


class Residual(nn.Module):
    """Add and norm around one sub-layer: the only place that knows pre-norm from post-norm.

    Sources: Attention Is All You Need, section 3.1 (post); On Layer Normalization in the
    Transformer Architecture (Xiong et al. 2020), figure 1 (pre).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre = config.norm_position == "pre"
        self.norm = NORMS[config.norm](config.d_model, config.norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Float[Tensor, "b t d"], layer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "b t d"]:
        if self.pre:
            return x + self.dropout(layer(self.norm(x)))
        return self.norm(x + self.dropout(layer(x)))


class Block(nn.Module):
    """Self-attention, cross-attention where there is a memory to look at, feed-forward."""

    def __init__(self, config: TransformerConfig, cross: bool = False) -> None:
        super().__init__()

        def attention() -> MultiHeadAttention:
            return MultiHeadAttention(
                config.d_model,
                config.n_heads,
                config.n_kv_heads,
                config.d_head,
                config.qkv_bias,
                config.bias,
            )

        self.self_attn = attention()
        self.self_residual = Residual(config)
        if cross:
            self.cross_attn = attention()
            self.cross_residual = Residual(config)
        if config.d_ff:
            self.mlp = FeedForward(
                config.d_model,
                config.d_ff,
                config.activation,
                config.gated,
                config.bias,
                config.dropout,
            )
            self.mlp_residual = Residual(config)
        self.has_cross = cross
        self.has_mlp = config.d_ff > 0

    def forward(
        self,
        x: Float[Tensor, "b t d"],
        around: Surroundings,
        cache: BlockCache | None = None,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "b t d"]:
        def look_at_each_other(x: Tensor) -> Tensor:
            past = None if cache is None else cache.self_attn
            scope = tap.at("self_attn")
            return self.self_attn(x, None, around.mask, around.bias, around.rotate, past, scope)

        def look_at_memory(x: Tensor) -> Tensor:
            seen = None if cache is None else cache.cross_attn
            scope = tap.at("cross_attn")
            return self.cross_attn(x, around.memory, around.memory_mask, cache=seen, tap=scope)

        x = tap("resid_pre", x)
        x = tap("resid_mid", self.self_residual(x, look_at_each_other))
        if self.has_cross:
            x = tap("resid_cross", self.cross_residual(x, look_at_memory))
        if self.has_mlp:
            x = self.mlp_residual(x, lambda x: self.mlp(x, tap.at("mlp")))
        return tap("resid_post", x)
