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
    "opening": "Attention weights of one head over your sentence: the stronger a cell, the more "
    "the query of that row attends to the key of that column.",
}
WORDS = {
    "encoder.self_attn": Words(
        **SELF,
        explanation="Encoder self-attention: every token attends to the whole sentence.",
        ahead="No causal mask: later tokens are visible",
    ),
    "decoder.self_attn": Words(
        **SELF,
        explanation="Causal self-attention: a token attends to itself and to earlier tokens.",
        ahead="Causal mask: later tokens are masked",
    ),
    "decoder.cross_attn": Words(
        row="target",
        column="source",
        cell="Predicting {row}, the decoder attends to {column}: {value}",
        opening="Cross-attention weights of one head: the stronger a cell, the more the decoder "
        "attends to that token of your sentence while it predicts the token of that row.",
        explanation="Cross-attention: a row is the decoder step that predicts the token on its "
        "left, a column is a token of the sentence in the encoder.",
        ahead="No causal mask: the whole source is visible",
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
