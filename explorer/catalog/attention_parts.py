"""The kinds of attention that a model has, and the words for each."""

from __future__ import annotations

from dataclasses import dataclass

from models import TransformerConfig


@dataclass(frozen=True)
class AttentionWords:
    """The words for one kind of attention: its rows and columns, one cell, the whole map."""

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
    "opening": "Each row is a token of your sentence; the stronger a cell, the more that token "
    "attends to the token above the column.",
}
WORDS = {
    "encoder.self_attn": AttentionWords(
        **SELF,
        explanation="The encoder attends to the whole sentence, before and after each token.",
        ahead="No causal mask: every token may attend to later ones",
    ),
    "decoder.self_attn": AttentionWords(
        **SELF,
        explanation="In the decoder a token attends to itself and the tokens before it.",
        ahead="Causal: no token attends to later ones",
    ),
    "decoder.cross_attn": AttentionWords(
        row="output",
        column="source",
        cell="Generating {row}, the model attends to {column}: {value}",
        opening="Each row is a word that the model generates; the stronger a cell, the more the "
        "model attends to that word of your sentence while generating it.",
        explanation="A row is the step that generates the word on its left, "
        "and the columns are the sentence that the encoder has read.",
        ahead="No causal mask: every token may attend to the whole source",
    ),
}


@dataclass(frozen=True)
class Part:
    """One kind of attention in a model, such as `decoder.cross_attn`, with its layers and heads."""

    name: str
    title: str
    layers: int
    heads: int

    @property
    def words(self) -> AttentionWords:
        return WORDS[self.name]


def site(part: str, layer: int) -> str:
    """The name of one layer's attention in a trace: `decoder.0.cross_attn`."""
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
