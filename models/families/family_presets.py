"""Our configs built like a published family or a document, so that both can be compared.

A model built like GPT-2, Llama or BERT can be exported as one.
"""

from typing import Any

from models.config import TransformerConfig
from models.presets import PRESETS

CHOSEN = (
    "norm_position",
    "final_norm",
    "dropout",
    "activation_dropout",
    "scale_embedding",
    "qkv_bias",
    "head_bias",
    "positions",
    "share_embeddings",
    "tie_embeddings",
)
SMALL_ENOUGH = ("d_model", "n_layers", "n_heads", "d_ff")
"""Fields taken from a document; the sizes only from encoders, which are small enough."""

LIKE: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": (
        "decoder",
        {
            "positions": "learned",
            "scale_embedding": False,
            "activation": "gelu-tanh",
            "head_bias": False,
            "tie_embeddings": True,
            "pooling": "last",
            "classifier_bias": False,
        },
    ),
    "llama": (
        "decoder",
        {
            "positions": "rotary",
            "scale_embedding": False,
            "norm": "rms",
            "activation": "silu",
            "gated": True,
            "bias": False,
            "qkv_bias": False,
            "pooling": "last",
            "classifier_bias": False,
        },
    ),
    "bert": (
        "encoder",
        {
            "positions": "learned",
            "count_padding": True,
            "n_segments": 2,
            "scale_embedding": False,
            "embedding_norm": True,
            "norm_position": "post",
            "final_norm": False,
            "activation": "gelu",
            "pooling": "first",
            "classifier_activation": "tanh",
        },
    ),
}
"""The kind of each family, and the fields that it fixes."""


def like(config: TransformerConfig, family: str) -> TransformerConfig:
    """The same sizes, built like a model of this family. ValueError when the kind is another."""
    if family in PRESETS:
        return _like_preset(config, family)
    kind, choices = LIKE[family]
    if config.kind != kind:
        raise ValueError(f"Models like {family} are of kind {kind}; this task needs {config.kind}.")
    return config.replace(
        **choices,
        d_ff=config.d_ff or 4 * config.d_model,  # none of them is attention alone
        d_classifier=config.d_model if family == "bert" else None,
        n_kv_heads=None,
        d_head=None,
    )


def _like_preset(config: TransformerConfig, name: str) -> TransformerConfig:
    """The choices of a document, with the sizes and the vocabulary of the task."""
    theirs = PRESETS[name]
    if config.kind != theirs.kind:
        raise ValueError(f"The {name} is of kind {theirs.kind}; this task needs {config.kind}.")
    fields = (
        CHOSEN if theirs.kind == "encoder-decoder" else (*CHOSEN, *SMALL_ENOUGH, "d_classifier")
    )
    choices = {field: getattr(theirs, field) for field in fields}
    return config.replace(**choices, n_kv_heads=None, d_head=None)


def kind_of(family: str) -> str:
    """The kind of model of a family or a document."""
    return PRESETS[family].kind if family in PRESETS else LIKE[family][0]
