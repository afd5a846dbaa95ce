"""The one description of a Transformer: what it is made of, as plain frozen data.

A config holds no tensors and building one has no effect on the world. It
round-trips through JSON, refuses keys it does not know, and `fault()` says in
words why a combination of values is no model.
"""

from dataclasses import dataclass

from models.plain import PlainData, choice_fault, range_fault, type_fault

KINDS = ("encoder", "decoder", "encoder-decoder")
HEADS = ("language-model", "classifier", "none")
POSITIONS = ("sinusoidal", "learned", "rotary", "alibi", "none")
NORMS = ("layer", "rms")
NORM_POSITIONS = ("pre", "post")
ACTIVATIONS = ("relu", "gelu", "silu")
POOLINGS = ("first", "mean")

CHOICES = {
    "kind": KINDS,
    "head": HEADS,
    "positions": POSITIONS,
    "norm": NORMS,
    "norm_position": NORM_POSITIONS,
    "activation": ACTIVATIONS,
    "pooling": POOLINGS,
}

LARGEST_SIZE = 1_000_000
"""No single size of a model may be larger: a config is read before it is trusted."""
MOST_LAYERS = 1_000
LARGEST_POSITION_TABLE = 25_000_000
"""Numbers in the table of sinusoids, which no file vouches for."""


@dataclass(frozen=True)
class TransformerConfig(PlainData):
    """Sizes and choices of one Transformer.

    `vocab_size` is what the model writes (and, with one stack, also what it
    reads); `src_vocab_size` is what the encoder of an encoder-decoder reads, or
    None when both stacks share one vocabulary size. `d_ff` 0 leaves the
    feed-forward layer out. Sizes that are None follow from the others.
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
    rope_theta: float = 10_000.0
    scale_embedding: bool = True

    norm: str = "layer"
    norm_position: str = "pre"
    norm_eps: float = 1e-5
    final_norm: bool = True

    activation: str = "relu"
    gated: bool = False
    qkv_bias: bool = True
    bias: bool = True

    dropout: float = 0.0
    tie_embeddings: bool = False

    n_classes: int = 2
    pooling: str = "first"
    d_classifier: int | None = None

    pad_id: int | None = None
    bos_id: int | None = None
    eos_id: int | None = None

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
            or _kind_fault(self)
            or range_fault(self, ("pad_id", "bos_id", "eos_id"), 0, self.vocab_size - 1)
        )


def _range_fault(config: TransformerConfig) -> str | None:
    heads = ("n_heads", "n_kv_heads", "d_head", "n_classes")
    sizes = ("vocab_size", "src_vocab_size", "d_model", "d_classifier", "max_len")
    return (
        range_fault(config, sizes + heads, 1, LARGEST_SIZE)
        or range_fault(config, ("n_layers", "n_encoder_layers"), 1, MOST_LAYERS)
        or range_fault(config, ("d_ff",), 0, LARGEST_SIZE)
        or range_fault(config, ("dropout",), 0, 0.95)
        or range_fault(config, ("norm_eps",), 1e-12, 1)
        or range_fault(config, ("rope_theta",), 1, 1e12)
    )


def _size_fault(config: TransformerConfig) -> str | None:
    if config.d_head is None and config.d_model % config.n_heads:
        return f"d_model {config.d_model} is not divisible by n_heads {config.n_heads}."
    if config.n_heads % config.kv_heads:
        return f"n_heads {config.n_heads} is not divisible by n_kv_heads {config.kv_heads}."
    if config.positions == "rotary" and config.head_width % 2:
        return f"Rotary positions turn pairs of numbers, so a head of {config.head_width} is odd."
    table = config.max_len * config.d_model
    if config.positions == "sinusoidal" and table > LARGEST_POSITION_TABLE:
        return f"A table of max_len × d_model = {table:,} sinusoids is too large."
    return None


def _kind_fault(config: TransformerConfig) -> str | None:
    if config.kind == "encoder-decoder":
        is_classifier = config.head == "classifier"
        return "A classifier head needs kind encoder or decoder." if is_classifier else None
    if config.src_vocab_size is not None:
        return "src_vocab_size is for encoder-decoders; this model reads what vocab_size counts."
    if config.n_encoder_layers is not None:
        return "n_encoder_layers is for encoder-decoders; n_layers counts the only stack."
    return None
