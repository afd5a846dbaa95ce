"""The configs of a task's model and training.

A model's follows from its tokenizer and the sizes that the task asks for.
"""

from collections.abc import Sequence
from typing import Any

from explorer.text import TrainedWith
from models.config import GenerationConfig, TrainConfig, TransformerConfig

Sizes = dict[str, Any]
SMALL: Sizes = {"d_model": 64, "n_layers": 1, "n_heads": 4, "d_ff": 128, "scale_embedding": False}
"""Embeddings are not scaled up, so that positions weigh as much as tokens."""
SMALLER: Sizes = SMALL | {"d_model": 32, "n_heads": 2}


def model_config(
    kind: str, tokenizer: TrainedWith, classes: Sequence[str] = (), **sizes: Any
) -> TransformerConfig:
    """A decoder continues a text, an encoder-decoder answers it with another one, up to the end.

    An encoder gives it one of these classes, or where there are none, each token a token.
    """
    if kind != "encoder":
        sizes["bos_id"] = tokenizer.bos_id
    if kind == "encoder-decoder":
        sizes["generation"] = GenerationConfig.ending_with(tokenizer.eos_id)
    if classes:
        sizes |= {"head": "classifier", "n_classes": len(classes)}
    sizes |= {"vocab_size": tokenizer.vocab_size, "pad_id": tokenizer.pad_id}
    return TransformerConfig(kind=kind, **sizes)


def toy_training(steps: int, lr: float) -> TrainConfig:
    """The training settings of a model that trains in seconds."""
    return TrainConfig(steps=steps, batch_size=64, lr=lr, warmup=50, schedule="linear")
