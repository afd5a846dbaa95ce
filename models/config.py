"""Configs of a Transformer, of generation and of training, as plain frozen data.

A config round-trips through JSON, refuses unknown keys, and `fault()` says in one sentence why its
values do not describe a model.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from models.config_fields import PlainData, choice_field, number_field
from models.feed_forward import ACTIVATION_FUNCTIONS
from models.normalization import NORM_LAYERS
from models.output_heads import POOLINGS, PROBLEM_TYPES, SCORE_FUNCTIONS
from models.rotary import LARGEST_MAX_LEN, RopeScaling

KINDS = ("encoder", "decoder", "encoder-decoder")
HEADS = ("language-model", "masked-language-model", "classifier", "none")
POSITIONS = ("sinusoidal", "learned", "rotary", "relative", "alibi", "none")
PAIRS = ("adjacent", "halves")
NORMS = tuple(NORM_LAYERS)
NORM_POSITIONS = ("pre", "post", "sandwich")
ACTIVATIONS = tuple(ACTIVATION_FUNCTIONS)
CLASSIFIER_ACTIVATIONS = ("relu", "tanh")
SCHEDULES = ("constant", "linear", "cosine", "inverse square root")
OPTIMIZERS = ("adamw", "adam", "sgd", "muon")
PRECISIONS = ("float32", "bfloat16")
TOKENS = ("pad_id", "bos_id")  # fields that hold a token ID

# A config is read before the weights that would confirm its sizes, so every size is bounded.
LARGEST_SIZE = 1_000_000
LARGEST_VOCABULARY = 300_000  # the largest in common use is 262,144 (Gemma)
LARGEST_EMBEDDING = 4_000_000_000  # numbers; the most published are 3.1 billion (Command R+)
LARGEST_POSITION_TABLE = 6_000_000  # numbers in the table of sinusoids
MOST_LAYERS = 200  # the deepest published have 126
MOST_HEADS = 512  # in a layer; the most published are 128
MOST_HEADS_IN_ALL = 20_000  # in a stack; the most published are 16,128 (Llama 3.1 405B)


@dataclass(frozen=True)
class GenerationConfig(PlainData):
    """Token IDs that only generation reads: see `models.generation`."""

    eos_ids: tuple[int, ...] = ()  # a text ends with any of these
    forced_first_id: int | None = None  # what an encoder-decoder must generate first (BART)
    banned_ids: tuple[int, ...] = ()  # never generated (Marian's padding)

    @classmethod
    def ending_with(cls, *tokens: int | None) -> "GenerationConfig":
        """With these end tokens, where None stands for no token."""
        return cls(tuple(token for token in tokens if token is not None))


@dataclass(frozen=True)
class TransformerConfig(PlainData):
    """Sizes and choices of one Transformer.

    `vocab_size` counts the tokens of the output (and, with one stack, of the input), and
    `src_vocab_size` those that the encoder of an encoder-decoder reads. `d_ff` 0 leaves the
    feed-forward layer out. Sizes that are None follow from the others, and `out_bias`,
    `mlp_bias`, `head_bias` from `bias`.
    """

    kind: str = choice_field("decoder", KINDS)
    head: str = choice_field("language-model", HEADS)

    vocab_size: int = number_field(256, 1, LARGEST_VOCABULARY)
    src_vocab_size: int | None = number_field(None, 1, LARGEST_VOCABULARY)
    d_model: int = number_field(64, 1, LARGEST_SIZE)
    n_layers: int = number_field(2, 1, MOST_LAYERS)
    n_encoder_layers: int | None = number_field(None, 1, MOST_LAYERS)
    n_heads: int = number_field(4, 1, MOST_HEADS)
    n_kv_heads: int | None = number_field(None, 1, MOST_HEADS)
    d_head: int | None = number_field(None, 1, LARGEST_SIZE)
    d_ff: int = number_field(256, 0, LARGEST_SIZE)
    d_ff_encoder: int | None = number_field(None, 1, LARGEST_SIZE)  # where the encoder's differs
    max_len: int = number_field(512, 1, LARGEST_MAX_LEN)

    positions: str = choice_field("sinusoidal", POSITIONS)
    pairs: str | None = choice_field(None, PAIRS)  # None: adjacent, but halves if rotary
    position_offset: int = number_field(0, 0, LARGEST_SIZE)  # unused rows of the table (BART)
    count_padding: bool = False  # whether padding on the left shifts positions (BERT)
    d_rotary: int | None = number_field(None, 1, LARGEST_SIZE)  # rotated part of a head (GPT-NeoX)
    rope_theta: float = number_field(10_000.0, 1, 1e12)
    rope_scaling: RopeScaling | None = None
    n_buckets: int = number_field(32, 4, LARGEST_SIZE)  # of relative distances (T5)
    max_distance: int = number_field(128, 1, LARGEST_MAX_LEN)
    n_segments: int = number_field(0, 0, LARGEST_SIZE)  # sentences a token can belong to (BERT)
    scale_embedding: bool = True
    embedding_norm: bool = False

    norm: str = choice_field("layer", NORMS)
    norm_position: str = choice_field("pre", NORM_POSITIONS)
    norm_eps: float = number_field(1e-5, 1e-12, 1)
    final_norm: bool = True
    parallel: bool = False  # attention and feed-forward read the same residual stream (GPT-J)
    shared_norm: bool = False  # … through one norm

    qkv_bias: bool = True
    qk_norm: bool = False
    attention_scale: float | None = number_field(None, 1e-6, 1e6)  # None: 1 / √d_head
    attention_cap: float | None = number_field(None, 1e-3, 1e6)  # of scores, ± this (Gemma 2)
    sink_logit: bool = False  # a learned logit of each head joins its softmax (gpt-oss)
    gated_attention: bool = False  # a gate of the output of each head (Qiu et al. 2025)
    windows: tuple[int, ...] = ()  # keys that a query attends to, per layer; 0: all

    activation: str = choice_field("relu", ACTIVATIONS)
    gated: bool = False
    bias: bool = True
    out_bias: bool | None = None
    mlp_bias: bool | None = None
    head_bias: bool | None = None

    dropout: float = number_field(0.0, 0, 0.95)  # of embeddings, sub-layers and a classifier
    activation_dropout: float | None = number_field(None, 0, 0.95)  # of mlp.hidden; None: dropout
    share_embeddings: bool = False  # both stacks of an encoder-decoder read one table
    tie_embeddings: bool = False
    logit_scale: float = number_field(1.0, 1e-6, 1e6)
    logit_cap: float | None = number_field(None, 1e-3, 1e6)

    n_classes: int = number_field(2, 1, LARGEST_SIZE)
    problem_type: str | None = choice_field(None, PROBLEM_TYPES)  # None: by the number of classes
    pooling: str = choice_field("first", tuple(POOLINGS))
    d_classifier: int | None = number_field(None, 1, LARGEST_SIZE)
    classifier_activation: str = choice_field("relu", CLASSIFIER_ACTIVATIONS)
    classifier_bias: bool = True

    pad_id: int | None = None
    bos_id: int | None = None  # what an encoder-decoder's target begins with
    generation: GenerationConfig = GenerationConfig()

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
    def hidden_dropout(self) -> float:
        return self.dropout if self.activation_dropout is None else self.activation_dropout

    @property
    def embedding_scale(self) -> float:
        """The factor of the token embedding."""
        return self.d_model**0.5 if self.scale_embedding else 1.0

    @property
    def scale(self) -> float:
        """The factor of q·k."""
        return self.head_width**-0.5 if self.attention_scale is None else self.attention_scale

    @property
    def rotary_width(self) -> int:
        return self.head_width if self.d_rotary is None else self.d_rotary

    def window(self, layer: int) -> int:
        """How many keys a query of this layer attends to at most, its own included; 0: all."""
        return self.windows[layer] if self.windows else 0

    @property
    def kv_heads(self) -> int:
        """Heads of the keys and values: fewer than `n_heads` when they are grouped."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def share_kv(self) -> bool:
        """Whether all heads read the same keys and values: multi-query attention."""
        return self.kv_heads == 1 < self.n_heads

    def kv_head(self, head: int) -> int:
        """The index of the keys and values of this head."""
        return head * self.kv_heads // self.n_heads

    @property
    def head_width(self) -> int:
        """Width of one head's queries, keys and values."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head

    @property
    def encoder_layers(self) -> int:
        return self.n_layers if self.n_encoder_layers is None else self.n_encoder_layers

    @property
    def of_encoder(self) -> "TransformerConfig":
        """The config of the encoder of an encoder-decoder."""
        if self.d_ff_encoder is None:
            return self
        return self.replace(d_ff=self.d_ff_encoder, d_ff_encoder=None)

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks of the model in the order they run: ("encoder", "decoder") or one of them."""
        return ("encoder", "decoder") if self.kind == "encoder-decoder" else (self.kind,)

    @property
    def score_function(self) -> str:
        """The one of SCORE_FUNCTIONS that the logits are meant for, as transformers decides."""
        if self.head == "classifier":
            if self.problem_type == "regression":
                return "none"
            if self.problem_type == "multi_label_classification" or self.n_classes == 1:
                return "sigmoid"
        return "softmax"

    def scores(self, logits: Tensor) -> Tensor:
        """The probabilities (…, options) of logits, or the values of a regression."""
        return SCORE_FUNCTIONS[self.score_function](logits)

    def fault(self) -> str | None:
        """One sentence saying why this is no model, or None when it is one."""
        return super().fault() or next(_faults(self), None)


@dataclass(frozen=True)
class TrainConfig(PlainData):
    """How to train: `warmup` counts steps; `clip` 0 leaves the gradients as they are.

    `lr` is the highest rate, at the end of the warm-up. `momentum` is the share of the former
    direction that SGD and Muon keep, and Adam's β₁; `beta2` and `eps` are Adam's. A batch goes
    through the model in `accumulation` parts for a single update: the same but for dropout, in
    less memory. With `precision` bfloat16, products are computed in it and weights stay in 32
    bits. `compiled` has no effect on a CPU. `seed` seeds the batches and dropout; the model's
    config has the seed of its weights.
    """

    steps: int = number_field(400, 1, 10_000_000)
    batch_size: int = number_field(64, 1, 4096)
    accumulation: int = number_field(1, 1, 4096)
    lr: float = number_field(3e-3, 1e-8, 1e9)
    warmup: int = number_field(50, 0, 10_000_000)
    schedule: str = choice_field("constant", SCHEDULES)
    optimizer: str = choice_field("adamw", OPTIMIZERS)
    momentum: float = number_field(0.9, 0, 0.9999)
    beta2: float = number_field(0.999, 0, 0.999999)
    eps: float = number_field(1e-8, 1e-16, 1)
    weight_decay: float = number_field(0.01, 0, 10)
    clip: float = number_field(1.0, 0, 1e6)
    label_smoothing: float = number_field(0.0, 0, 0.95)
    precision: str = choice_field("float32", PRECISIONS)
    compiled: bool = False
    seed: int = number_field(0, 0, 2**31 - 1)


def _faults(config: TransformerConfig) -> Iterator[str]:
    """Why the values contradict each other; the sizes first, since the rest relies on them."""
    if config.d_head is None and config.d_model % config.n_heads:
        yield f"d_model {config.d_model} is not divisible by n_heads {config.n_heads}."
    if config.n_heads % config.kv_heads:
        yield f"n_heads {config.n_heads} is not divisible by n_kv_heads {config.kv_heads}."
    layers = max(config.n_layers, config.encoder_layers)
    if layers * config.n_heads > MOST_HEADS_IN_ALL:
        heads = f"{layers} layers of {config.n_heads} heads"
        yield f"{heads} are too many: a model has at most {MOST_HEADS_IN_ALL:,} heads."
    vocabulary = max(config.vocab_size, config.src_vocab_size or 0)
    if vocabulary * config.d_model > LARGEST_EMBEDDING:
        table = f"An embedding of {vocabulary:,} tokens × {config.d_model:,} numbers"
        yield f"{table} is too large: at most {LARGEST_EMBEDDING:,} numbers are read."
    if config.windows and len(config.windows) != config.n_layers:
        yield f"windows must name one per layer, {config.n_layers}, not {len(config.windows)}."
    if any(not 0 <= window <= LARGEST_MAX_LEN for window in config.windows):
        yield f"Every one of windows must be between 0 and {LARGEST_MAX_LEN:,}."
    yield from _position_faults(config)
    yield from _kind_faults(config)
    yield from _token_faults(config)
    if config.kind == "decoder" and config.head == "classifier" and config.pooling == "first":
        why = "The first token of a decoder attends to itself alone"
        yield f"{why}, so pooling must be mean or last."
    if config.problem_type == "single_label_classification" and config.n_classes == 1:
        yield "problem_type single_label_classification needs two classes: one is always certain."
    if config.shared_norm and not config.parallel:
        yield "shared_norm is for parallel blocks, whose two parts read the same stream."
    if config.parallel and config.norm_position != "pre":
        yield "Parallel blocks norm what they read, so norm_position must be pre."
    if config.share_embeddings and config.src_vocab_size not in (None, config.vocab_size):
        yield "share_embeddings needs one vocabulary, but src_vocab_size is another."


def _position_faults(config: TransformerConfig) -> Iterator[str]:
    if config.positions == "rotary":
        if (width := config.rotary_width) % 2:
            yield f"Rotary positions turn pairs of numbers, so a head of {width} is odd."
        if width > config.head_width:
            yield f"d_rotary {config.d_rotary} is wider than a head of {config.head_width}."
    elif config.rope_scaling is not None:
        yield "rope_scaling is for rotary positions."
    if config.positions == "relative" and config.max_distance <= config.n_buckets // 2:
        yield "max_distance must be above half of n_buckets, whose near half counts one by one."
    if config.rope_scaling is not None and config.rope_theta <= 1:
        yield "rope_theta must be above 1 to be scaled."
    table = config.max_len * config.d_model
    if config.positions == "sinusoidal" and table > LARGEST_POSITION_TABLE:
        yield f"A table of max_len × d_model = {table:,} sinusoids is too large."


ONLY_FOR_TWO_STACKS = {
    "src_vocab_size": "this model reads what vocab_size counts",
    "n_encoder_layers": "n_layers counts the only stack",
    "d_ff_encoder": "d_ff is the width of the only stack",
    "share_embeddings": "this model has one table",
}


def _kind_faults(config: TransformerConfig) -> Iterator[str]:
    if config.n_segments and config.kind != "encoder":
        yield "n_segments is for models of kind encoder; no other is told the sentence of a token."
    if config.kind == "encoder-decoder":
        if config.head == "classifier":
            yield "A classifier head needs kind encoder or decoder."
        if config.windows:
            yield "windows are for models of one stack."
        return
    for name, reason in ONLY_FOR_TWO_STACKS.items():
        if getattr(config, name) not in (None, False):
            yield f"{name} is for encoder-decoders; {reason}."


def _token_faults(config: TransformerConfig) -> Iterator[str]:
    last, generation = config.vocab_size - 1, config.generation
    ids = [(name, getattr(config, name)) for name in TOKENS]
    ids += [("generation.forced_first_id", generation.forced_first_id)]
    ids += [("generation.eos_ids", token) for token in generation.eos_ids]
    ids += [("generation.banned_ids", token) for token in generation.banned_ids]
    for name, token in ids:
        if token is not None and not 0 <= token <= last:
            yield f"{name} must be between 0 and {last:,}, not {str(token)[:40]}."
    if len(set(generation.banned_ids)) == config.vocab_size:
        yield "generation.banned_ids must leave something to generate."
