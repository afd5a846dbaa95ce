"""One layer of a stack: attention, a look at the source where there is one, feed-forward."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jaxtyping import Bool, Float
from torch import Tensor, nn

from models.attention import Bias, Mask, MultiHeadAttention
from models.cache import BlockCache
from models.config import TransformerConfig
from models.feed_forward import FeedForward
from models.normalization import NORMS
from models.positional import Rotation
from models.tap import NO_TAP, Tap


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What every block of a stack shares in one pass.

    `masks` has one mask per window that occurs in the stack.
    """

    masks: Mapping[int, Mask | None] = field(default_factory=lambda: {0: None})
    bias: Bias | None = None
    rotate: Rotation | None = None
    memory: Float[Tensor, "b s d"] | None = None
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
        self.norm = NORMS[config.norm](config.d_model, config.norm_eps)
        if self.norms.output is not None:
            self.out_norm = NORMS[config.norm](config.d_model, config.norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "b t d"],
        sub_layer: Callable[[Tensor], Tensor],
        reads: Float[Tensor, "b t d"] | None = None,
    ) -> Float[Tensor, "b t d"]:
        return self.write(x, sub_layer(self.read(x if reads is None else reads)))

    def read(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        """What the sub-layer is given of the residual stream."""
        return self.input_norm(x)

    def write(
        self, x: Float[Tensor, "b t d"], out: Float[Tensor, "b t d"]
    ) -> Float[Tensor, "b t d"]:
        """The residual stream after the sub-layer's output is added to it."""
        return self.sum_norm(x + self.dropout(self.output_norm(out)))

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
    """Self-attention, cross-attention where there is a memory to look at, feed-forward.

    `window` is how far self-attention looks back. In a parallel block the feed-forward
    layer reads what self-attention reads (GPT-J, Wang and Komatsuzaki 2021).
    """

    def __init__(self, config: TransformerConfig, cross: bool = False, window: int = 0) -> None:
        super().__init__()
        self.window = window
        self.parallel = config.parallel
        self.self_attn = build_attention(config)
        self.self_residual = Residual(config)
        if cross:
            self.cross_attn = build_attention(config)
            self.cross_residual = Residual(config)
        if config.d_ff:
            self.mlp = FeedForward(
                config.d_model,
                config.d_ff,
                config.activation,
                config.gated,
                config.has_mlp_bias,
                config.dropout,
            )
            self.mlp_residual = Residual(config)
            if config.shared_norm:
                self.mlp_residual.norm = self.self_residual.norm
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
            mask, scope = around.masks[self.window], tap.at("self_attn")
            return self.self_attn(x, None, mask, around.bias, around.rotate, past, scope)

        def look_at_memory(x: Tensor) -> Tensor:
            seen = None if cache is None else cache.cross_attn
            scope = tap.at("cross_attn")
            return self.cross_attn(x, around.memory, around.memory_mask, cache=seen, tap=scope)

        x = before = tap("resid_pre", x)
        x = tap("resid_mid", self.self_residual(x, look_at_each_other))
        if self.has_cross:
            x = tap("resid_cross", self.cross_residual(x, look_at_memory))
        if self.has_mlp:
            reads = before if self.parallel else None
            x = self.mlp_residual(x, lambda x: self.mlp(x, tap.at("mlp")), reads)
        return tap("resid_post", x)

    def remember(
        self, x: Float[Tensor, "b t d"], rotate: Rotation | None, cache: BlockCache
    ) -> None:
        """Keys and values of these tokens into the cache: all that later ones need of them."""
        reads = self.self_residual.read(x)
        self.self_attn.keys_and_values(reads, None, rotate, cache.self_attn)  # which appends them
