"""The kinds of attention that a model has, and how they are spoken of."""

from __future__ import annotations

from dataclasses import dataclass

from models import TransformerConfig


@dataclass(frozen=True)
class Words:
    """How one kind of attention is spoken of: its rows and columns, one cell, the whole."""

    row: str
    column: str
    cell: str
    opening: str
    explanation: str
    ahead: str


SELF = {
    "row": "query",
    "column": "key",
    "cell": "{row} attends to {column}: {value}",
    "opening": "Every row is a token of your sentence; the stronger a cell, the more that token "
    "looks at the token above the column.",
}
WORDS = {
    "encoder.self_attn": Words(
        **SELF,
        explanation="The encoder looks at the whole sentence, before and after each token.",
        ahead="No causal mask here: every token may look ahead",
    ),
    "decoder.self_attn": Words(
        **SELF,
        explanation="The decoder looks back only: a token sees itself and the tokens before it.",
        ahead="Causal: no one looks ahead",
    ),
    "decoder.cross_attn": Words(
        row="writes",
        column="looks at",
        cell="Writing {row}, the model looks at {column}: {value}",
        opening="Every row is a word that the model writes; the stronger a cell, the more the "
        "model looks at that word of your sentence while it writes.",
        explanation="A row is the step that writes the word on its left, "
        "and the columns are the sentence that the encoder has read.",
        ahead="No causal mask here: the whole source may be seen",
    ),
}


@dataclass(frozen=True)
class Part:
    """One kind of attention in a model: who asks, whom it may look at, how many heads."""

    name: str
    title: str
    layers: int
    heads: int

    @property
    def words(self) -> Words:
        return WORDS[self.name]


def site(part: str, layer: int) -> str:
    """The name under which the core shows one layer's attention."""
    stack, attention = part.split(".")
    return f"{stack}.{layer}.{attention}"


def parts(config: TransformerConfig) -> tuple[Part, ...]:
    """The kinds of attention that a model has, in the order they run."""
    heads, layers = config.n_heads, config.n_layers
    if config.kind == "encoder":
        return (Part("encoder.self_attn", "Encoder", layers, heads),)
    decoder = Part("decoder.self_attn", "Decoder", layers, heads)
    if config.kind == "decoder":
        return (decoder,)
    encoder = Part("encoder.self_attn", "Encoder", config.encoder_layers, heads)
    return (encoder, decoder, Part("decoder.cross_attn", "Cross", layers, heads))
