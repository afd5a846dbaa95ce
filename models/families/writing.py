"""What every published config.json has in common: classes of models, IDs, names of functions."""

from collections.abc import Mapping
from typing import Any

from models.config import RopeScaling, TransformerConfig

WRITTEN_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu-tanh": "gelu_new", "silu": "silu"}


def classes(stem: str, language: str = "ForCausalLM") -> dict[str, str]:
    """The class for every head that a decoder may have."""
    return {
        "language-model": stem + language,
        "classifier": stem + "ForSequenceClassification",
        "none": stem + "Model",
    }


def common(config: TransformerConfig, class_names: Mapping[str, str]) -> dict[str, Any]:
    """The class of the model, by its head, and the IDs of its special tokens."""
    ends = config.generation.eos_ids
    values: dict[str, Any] = {
        "architectures": [class_names[config.head]] if config.head in class_names else [],
        "vocab_size": config.vocab_size,
        "tie_word_embeddings": config.tie_embeddings,
        "pad_token_id": config.pad_id,
        "bos_token_id": config.bos_id,
        "eos_token_id": list(ends) if len(ends) > 1 else next(iter(ends), None),
    }
    if config.head == "classifier":
        values["problem_type"] = config.problem_type
        names = [f"LABEL_{i}" for i in range(config.n_classes)]
        values["id2label"] = {str(i): name for i, name in enumerate(names)}
        values["label2id"] = {name: i for i, name in enumerate(names)}
    return values


def rotation(config: TransformerConfig) -> dict[str, Any]:
    """θ and its scaling in the older notation, which every version reads."""
    scaling = config.rope_scaling
    return {
        "rope_theta": config.rope_theta,
        "rope_scaling": None if scaling is None else scaled(scaling),
    }


def scaled(scaling: RopeScaling) -> dict[str, Any]:
    kind = {"rope_type": scaling.kind, "type": scaling.kind, "factor": scaling.factor}
    if scaling.kind == "linear":
        return kind
    kind["original_max_position_embeddings"] = scaling.original_len
    yarn = ("beta_fast", "beta_slow", "attention_factor", "truncate")
    bounds = ("low_freq_factor", "high_freq_factor") if scaling.kind == "llama3" else yarn
    return kind | {name: getattr(scaling, name) for name in bounds}
