"""The fields of a config that change a forward pass: models of one shape compute the same."""

from typing import Any

from models.config import TransformerConfig

FIELDS_WITHOUT_EFFECT = ("dropout", "activation_dropout", "bias")
"""Dropout is off when a model is evaluated, and the fields of the parts repeat `bias`."""
ROTARY_FIELDS = ("d_rotary", "rope_theta", "rope_scaling")
RELATIVE_FIELDS = ("n_buckets", "max_distance")
TABLE_FIELDS = ("position_offset",)
CLASSIFIER_FIELDS = (
    "n_classes",
    "problem_type",
    "pooling",
    "d_classifier",
    "classifier_activation",
    "classifier_bias",
)
VOCABULARY_FIELDS = ("tie_embeddings", "logit_scale", "logit_cap", "head_bias")
FEED_FORWARD_FIELDS = ("activation", "gated", "mlp_bias", "parallel", "shared_norm")


def effective_fields(config: TransformerConfig) -> dict[str, Any]:
    """The values that matter, with everything that follows from others written out."""
    values = config.to_dict() | {
        "n_kv_heads": config.kv_heads,
        "d_head": config.head_width,
        "src_vocab_size": config.src_vocab_size or config.vocab_size,
        "n_encoder_layers": config.encoder_layers,
        "d_ff_encoder": config.of_encoder.d_ff,
        "d_rotary": config.rotary_width,
        "pairs": pair_layout(config),
        "attention_scale": config.scale,
        "windows": tuple(config.window(i) for i in range(config.n_layers)),
        "out_bias": config.has_out_bias,
        "mlp_bias": config.has_mlp_bias,
        "head_bias": config.has_head_bias,
    }
    return {name: value for name, value in values.items() if name not in unused_fields(config)}


def pair_layout(config: TransformerConfig) -> str | None:
    """How sinusoids or rotations are laid out."""
    usual = {"sinusoidal": "adjacent", "rotary": "halves"}.get(config.positions)
    return usual and (config.pairs or usual)


def unused_fields(config: TransformerConfig) -> set[str]:
    """Fields that have no effect in this config."""
    away = set(FIELDS_WITHOUT_EFFECT)
    away |= set() if config.positions == "rotary" else set(ROTARY_FIELDS)
    away |= set() if config.positions == "relative" else set(RELATIVE_FIELDS)
    away |= set() if config.positions == "learned" else set(TABLE_FIELDS)
    away |= set() if config.positions in ("learned", "sinusoidal") else {"count_padding"}
    away |= set() if config.head == "classifier" else set(CLASSIFIER_FIELDS)
    away |= set() if config.head.endswith("language-model") else set(VOCABULARY_FIELDS)
    away |= set() if config.d_ff else set(FEED_FORWARD_FIELDS)
    away |= set() if config.d_classifier else {"classifier_activation"}
    return away
