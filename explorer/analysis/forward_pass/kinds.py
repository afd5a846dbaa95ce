"""Every kind of stage, in the order of a pass; `KINDS` is the table of them."""

from __future__ import annotations

from explorer.analysis.forward_pass.attention_kinds import (
    AttentionWeights,
    Concat,
    DotProducts,
    HeadNorm,
    HeadOut,
    Masked,
    PositionBias,
    Projection,
    Rotation,
    Scores,
)
from explorer.analysis.forward_pass.kind_formulas import Norm
from explorer.analysis.forward_pass.output_kinds import (
    ClassHidden,
    ClassLogits,
    Logits,
    Pooling,
    Probabilities,
    Transform,
)
from explorer.analysis.forward_pass.stage_kind import HIDDEN, STREAM, Kind
from explorer.analysis.forward_pass.stream_kinds import (
    Activation,
    Addition,
    Embedding,
    EmbeddingSum,
    Linear,
    PositionVectors,
    Segments,
    TokenIds,
)

KINDS: dict[str, Kind] = {
    "tokens": TokenIds(),
    "embedding": Embedding(),
    "positions": PositionVectors(),
    "segments": Segments(),
    "sum": EmbeddingSum(),
    "norm": Norm("Norm", "Read by the sub-layer; the residual stream itself is unchanged."),
    "output norm": Norm("Output norm", "The output is normalized before it is added."),
    "stream norm": Norm("Norm", "The residual stream itself is normalized.", recorded=True),
    "final norm": Norm("Final norm", "The last norm of the residual stream.", recorded=True),
    "projected": Projection(),
    "head norm": HeadNorm("Norm", "The vectors of every head are normalized."),
    "rotated": Rotation(),
    "products": DotProducts(),
    "scores": Scores(),
    "bias": PositionBias(),
    "masked": Masked(),
    "weights": AttentionWeights(),
    "head out": HeadOut(),
    "concat": Concat(),
    "output projection": Linear("Output projection", STREAM, "z W_O b_O", "has_out_bias"),
    "gate": Linear("Gate projection", HIDDEN, "g W_g b_g", "has_mlp_bias"),
    "up": Linear("Up projection", HIDDEN, "u W_1 b_1", "has_mlp_bias"),
    "activation": Activation(),
    "down": Linear("Down projection", STREAM, "z W_2 b_2", "has_mlp_bias"),
    "add": Addition(),
    "pooled": Pooling(),
    "class hidden": ClassHidden(),
    "class logits": ClassLogits(),
    "transform": Transform(),
    "logits": Logits(),
    "probabilities": Probabilities(),
}
