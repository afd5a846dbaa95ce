"""The kinds of attention that a model has, and the words for each."""

from dataclasses import dataclass

from models import TransformerConfig


@dataclass(frozen=True)
class AttentionWords:
    """The words for one kind of attention: its name, a cell, the map, what is ahead."""

    name: str
    cell: str
    explanation: str
    ahead: str


SELF = "{row} attends to {column}: {value}"
STEPS = (
    "Each row is a step of the decoder, labelled with the token that it writes; each column is a "
    "token of your sentence."
)
WORDS = {
    "encoder.self_attn": AttentionWords(
        "Encoder self-attention",
        cell=SELF,
        explanation="Encoder self-attention: each row is a token as query, each column a token "
        "as key. Hatched cells are masked.",
        ahead="No causal mask: later tokens are visible",
    ),
    "decoder.self_attn": AttentionWords(
        "Decoder self-attention",
        cell=SELF,
        explanation="Decoder self-attention: each row is a token as query, each column a token "
        "as key. Hatched cells are masked.",
        ahead="Causal mask: later tokens are masked",
    ),
    "decoder.cross_attn": AttentionWords(
        "Cross-attention",
        cell="Writing {row}, the decoder attends to {column}: {value}",
        explanation=f"Cross-attention. {STEPS}",
        ahead="No causal mask: the whole source is visible",
    ),
}


@dataclass(frozen=True)
class Part:
    """One kind of attention in a model, such as `decoder.cross_attn`, with its layers and heads.

    `title` is its short name, where one kind is chosen.
    """

    name: str
    title: str
    layers: int
    heads: int

    @property
    def words(self) -> AttentionWords:
        return WORDS[self.name]


def map_title(model: str, part: str, heads: str) -> str:
    """The title of a map, the same everywhere: the model, the attention, the layer and head."""
    return f"{model} · {WORDS[part].name} · {heads}"


def head_title(model: str, part: str, layer: int, head: int) -> str:
    return map_title(model, part, f"Layer {layer}, head {head}")


def site(part: str, layer: int) -> str:
    """The name of one layer's attention in a trace: `decoder.0.cross_attn`."""
    stack, attention = part.split(".")
    return f"{stack}.{layer}.{attention}"


def parts(config: TransformerConfig) -> tuple[Part, ...]:
    """The kinds of attention that a model has, in the order in which they run."""
    heads, layers = config.n_heads, config.n_layers
    if config.kind == "encoder":
        return (Part("encoder.self_attn", "Encoder", layers, heads),)
    decoder = Part("decoder.self_attn", "Decoder", layers, heads)
    if config.kind == "decoder":
        return (decoder,)
    encoder = Part("encoder.self_attn", "Encoder", config.encoder_layers, heads)
    return (encoder, decoder, Part("decoder.cross_attn", "Cross", layers, heads))
