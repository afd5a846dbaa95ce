"""The one description of a Transformer: what it is made of, as plain frozen data.

A config holds no tensors and building one has no effect on the world. It
round-trips through JSON, refuses keys it does not know, and `fault()` says in
words why a combination of values is no model.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from models.plain import PlainData, choice_fault, range_fault, type_fault
from models.rope_scaling import LARGEST_MAX_LEN, RopeScaling

KINDS = ("encoder", "decoder", "encoder-decoder")
HEADS = ("language-model", "masked-language-model", "classifier", "none")
POSITIONS = ("sinusoidal", "learned", "rotary", "relative", "alibi", "none")
PAIRS = ("adjacent", "halves")
NORMS = ("layer", "rms")
ACTIVATIONS = ("relu", "gelu", "gelu-tanh", "silu")
CLASSIFIER_ACTIVATIONS = ("relu", "tanh")
POOLINGS = ("first", "mean", "last")


class ResidualNorms(NamedTuple):
    """Which norms stand around a sub-layer f, each by its name in `models.block.Residual`.

    x ← sum(x + output(f(input(x)))), where None is the identity.
    """

    input: str | None = None
    """Applied to what the sub-layer reads of the residual stream."""
    output: str | None = None
    """Applied to what the sub-layer wrote, before it is added to the residual stream."""
    sum: str | None = None
    """Applied to the residual stream after the addition."""


RESIDUAL_NORMS = {
    "pre": ResidualNorms(input="norm"),
    "post": ResidualNorms(sum="norm"),
    "sandwich": ResidualNorms(input="norm", output="out_norm"),
}
"""By `norm_position`: the only place that says where the norms of a block stand.

Sources: On Layer Normalization in the Transformer Architecture (Xiong et al. 2020), figure 1
(pre); Attention Is All You Need, section 3.1 (post); CogView (Ding et al. 2021), section 2.4
(sandwich).
"""
NORM_POSITIONS = tuple(RESIDUAL_NORMS)

CHOICES = {
    "kind": KINDS,
    "head": HEADS,
    "positions": POSITIONS,
    "pairs": PAIRS,
    "norm": NORMS,
    "norm_position": NORM_POSITIONS,
    "activation": ACTIVATIONS,
    "classifier_activation": CLASSIFIER_ACTIVATIONS,
    "pooling": POOLINGS,
}

TOKENS = ("pad_id", "bos_id", "eos_id", "first_id")

LARGEST_SIZE = 1_000_000
"""No single size of a model may be larger: a config is read before it is trusted."""
MOST_PIXELS = 1_000
"""Sides and channels of a patch, whose weights grow with all three."""
MOST_LAYERS = 200
"""The deepest models published have 126. Building costs time before a file vouches for it."""
LARGEST_POSITION_TABLE = 6_000_000
"""Numbers in the table of sinusoids, which no file vouches for."""


@dataclass(frozen=True)
class TransformerConfig(PlainData):
    """Sizes and choices of one Transformer.

    `vocab_size` is what the model writes (and, with one stack, also what it
    reads); `src_vocab_size` is what the encoder of an encoder-decoder reads, or
    None when both stacks share one vocabulary size. `d_ff` 0 leaves the
    feed-forward layer out. Sizes that are None follow from the others, and the biases
    `out_bias`, `mlp_bias`, `head_bias` from `bias`.
    """

    kind: str = "decoder"
    head: str = "language-model"

    vocab_size: int = 256
    src_vocab_size: int | None = None
    d_model: int = 64
    n_layers: int = 2
    n_encoder_layers: int | None = None
    n_heads: int = 4
    n_kv_heads: int | None = None
    d_head: int | None = None
    d_ff: int = 256
    max_len: int = 512

    positions: str = "sinusoidal"
    pairs: str | None = None  # of sinusoids and rotations; None: adjacent and halves, as published
    position_offset: int = 0  # rows of the learned table before the first position (BART)
    count_padding: bool = False  # whether padding on the left shifts positions (BERT)
    d_rotary: int | None = None  # how much of a head is turned (GPT-NeoX); None: all
    rope_theta: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    n_buckets: int = 32  # of relative distances (T5)
    max_distance: int = 128
    n_segments: int = 0  # sentences that a token can belong to (BERT)
    patch_size: int = 0  # pixels of a side, for those that read images; 0: tokens are read
    n_channels: int = 3
    scale_embedding: bool = True
    embedding_norm: bool = False

    norm: str = "layer"
    norm_position: str = "pre"
    norm_eps: float = 1e-5
    final_norm: bool = True
    parallel: bool = False  # attention and feed-forward read the same stream (GPT-J)
    shared_norm: bool = False  # … through one norm

    qkv_bias: bool = True
    qk_norm: bool = False
    attention_scale: float | None = None  # None: 1 / √d_head
    attention_cap: float | None = None  # scores stay between ± this (Gemma 2)
    windows: tuple[int, ...] = ()  # keys a query may look back at, per layer; 0: all

    activation: str = "relu"
    gated: bool = False
    bias: bool = True
    out_bias: bool | None = None
    mlp_bias: bool | None = None
    head_bias: bool | None = None

    dropout: float = 0.0
    share_embeddings: bool = False  # both stacks of an encoder-decoder read one table
    tie_embeddings: bool = False
    logit_scale: float = 1.0
    logit_cap: float | None = None

    n_classes: int = 2
    pooling: str = "first"
    d_classifier: int | None = None
    classifier_activation: str = "relu"
    classifier_bias: bool = True

    pad_id: int | None = None
    bos_id: int | None = None
    eos_id: int | None = None
    more_eos_ids: tuple[int, ...] = ()
    first_id: int | None = None  # what two stacks must write first (BART)
    banned_ids: tuple[int, ...] = ()  # never written (Marian's padding)

    @property
    def has_out_bias(self) -> bool:
        return self.bias if self.out_bias is None else self.out_bias

    @property
    def has_mlp_bias(self) -> bool:
        return self.bias if self.mlp_bias is None else self.mlp_bias

    @property
    def has_head_bias(self) -> bool:
        return self.bias if self.head_bias is None else self.head_bias

    @property
    def residual_norms(self) -> ResidualNorms:
        """Which norms stand around every sub-layer of a block."""
        return RESIDUAL_NORMS[self.norm_position]

    @property
    def scale(self) -> float:
        """What q·k is multiplied with."""
        return self.head_width**-0.5 if self.attention_scale is None else self.attention_scale

    @property
    def rotary_width(self) -> int:
        return self.head_width if self.d_rotary is None else self.d_rotary

    def window(self, layer: int) -> int:
        """How many keys a query of this layer may look back at, itself included; 0: all."""
        return self.windows[layer] if self.windows else 0

    @property
    def kv_heads(self) -> int:
        """Heads of the keys and values: fewer than `n_heads` when they are grouped."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def head_width(self) -> int:
        """Width of one head's queries, keys and values."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head

    @property
    def encoder_layers(self) -> int:
        return self.n_layers if self.n_encoder_layers is None else self.n_encoder_layers

    @property
    def patch_rows(self) -> int:
        """How many patches an image is high and wide, for which there are positions."""
        return math.isqrt(self.max_len - 1)

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks of the model in the order they run: ("encoder", "decoder") or one of them."""
        return ("encoder", "decoder") if self.kind == "encoder-decoder" else (self.kind,)

    def fault(self) -> str | None:
        """One sentence saying why this is no model, or None when it is one."""
        return (
            type_fault(self)
            or choice_fault(self, CHOICES)
            or _range_fault(self)
            or _size_fault(self)
            or _position_fault(self)
            or _kind_fault(self)
            or range_fault(self, TOKENS, 0, self.vocab_size - 1)
            or _choices_fault(self)
        )


def _range_fault(config: TransformerConfig) -> str | None:
    heads = ("n_heads", "n_kv_heads", "d_head", "d_rotary", "n_classes")
    sizes = ("vocab_size", "src_vocab_size", "d_model", "d_classifier")
    return (
        range_fault(config, sizes + heads, 1, LARGEST_SIZE)
        or range_fault(config, ("max_len", "max_distance"), 1, LARGEST_MAX_LEN)
        or range_fault(config, ("n_buckets",), 4, LARGEST_SIZE)
        or range_fault(config, ("n_layers", "n_encoder_layers"), 1, MOST_LAYERS)
        or range_fault(config, ("d_ff", "n_segments", "position_offset"), 0, LARGEST_SIZE)
        or range_fault(config, ("patch_size",), 0, MOST_PIXELS)
        or range_fault(config, ("n_channels",), 1, MOST_PIXELS)
        or range_fault(config, ("dropout",), 0, 0.95)
        or range_fault(config, ("norm_eps",), 1e-12, 1)
        or range_fault(config, ("rope_theta",), 1, 1e12)
        or range_fault(config, ("attention_scale", "logit_scale"), 1e-6, 1e6)
        or range_fault(config, ("attention_cap", "logit_cap"), 1e-3, 1e6)
    )


def _size_fault(config: TransformerConfig) -> str | None:
    if config.d_head is None and config.d_model % config.n_heads:
        return f"d_model {config.d_model} is not divisible by n_heads {config.n_heads}."
    if config.n_heads % config.kv_heads:
        return f"n_heads {config.n_heads} is not divisible by n_kv_heads {config.kv_heads}."
    if config.windows and len(config.windows) != config.n_layers:
        return f"windows must name one per layer, {config.n_layers}, not {len(config.windows)}."
    if any(not 0 <= window <= LARGEST_MAX_LEN for window in config.windows):
        return f"Every one of windows must be between 0 and {LARGEST_MAX_LEN:,}."
    for name in ("more_eos_ids", "banned_ids"):
        if any(not 0 <= one < config.vocab_size for one in getattr(config, name)):
            return f"Every one of {name} must be between 0 and {config.vocab_size - 1:,}."
    if len(set(config.banned_ids)) == config.vocab_size:
        return "banned_ids must leave something to write."
    return None


def _position_fault(config: TransformerConfig) -> str | None:
    if config.positions == "rotary":
        if config.rotary_width % 2:
            width = config.rotary_width
            return f"Rotary positions turn pairs of numbers, so a head of {width} is odd."
        if config.rotary_width > config.head_width:
            return f"d_rotary {config.d_rotary} is wider than a head of {config.head_width}."
    elif config.rope_scaling is not None:
        return "rope_scaling is for rotary positions."
    if config.positions == "relative" and config.max_distance <= config.n_buckets // 2:
        return "max_distance must be above half of n_buckets, whose near half counts one by one."
    if config.rope_scaling is not None and config.rope_theta <= 1:
        return "rope_theta must be above 1 to be scaled."
    table = config.max_len * config.d_model
    if config.positions == "sinusoidal" and table > LARGEST_POSITION_TABLE:
        return f"A table of max_len × d_model = {table:,} sinusoids is too large."
    return None


def _kind_fault(config: TransformerConfig) -> str | None:
    if config.kind == "encoder-decoder":
        if config.head == "classifier":
            return "A classifier head needs kind encoder or decoder."
        return "windows are for models of one stack." if config.windows else None
    if config.src_vocab_size is not None:
        return "src_vocab_size is for encoder-decoders; this model reads what vocab_size counts."
    if config.n_encoder_layers is not None:
        return "n_encoder_layers is for encoder-decoders; n_layers counts the only stack."
    if config.share_embeddings:
        return "share_embeddings is for encoder-decoders; this model has one table."
    return None


def _choices_fault(config: TransformerConfig) -> str | None:
    if config.patch_size:
        if config.kind != "encoder" or config.head not in ("classifier", "none"):
            return "Images are read by encoders with a classifier head or none."
        if config.positions != "learned" or config.max_len != config.patch_rows**2 + 1:
            return "Images need a learned position for each patch of a square and one before."
        if config.pad_id is not None:
            return "pad_id is for those that read tokens, not images."
    if config.shared_norm and not config.parallel:
        return "shared_norm is for parallel blocks, whose two parts read the same stream."
    if config.parallel and config.norm_position != "pre":
        return "Parallel blocks norm what they read, so norm_position must be pre."
    if config.share_embeddings and config.src_vocab_size not in (None, config.vocab_size):
        return "share_embeddings needs one vocabulary, but src_vocab_size is another."
    return None
