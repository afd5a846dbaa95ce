"""The configs of a task's model and training.

A model's follows from its tokenizer and the sizes that the task asks for.
"""

from collections.abc import Sequence
from typing import Any

from explorer.text import TrainedWith
from models.config import GenerationConfig, TrainConfig, TransformerConfig


def decoder(tokenizer: TrainedWith, **sizes: Any) -> TransformerConfig:
    """It continues a text."""
    return TransformerConfig(
        kind="decoder",
        vocab_size=tokenizer.vocab_size,
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        **sizes,
    )


def encoder_decoder(tokenizer: TrainedWith, **sizes: Any) -> TransformerConfig:
    """It answers a text with another one, up to the end token."""
    return TransformerConfig(
        kind="encoder-decoder",
        vocab_size=tokenizer.vocab_size,
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        generation=GenerationConfig.ending_with(tokenizer.eos_id),
        **sizes,
    )


def classifier(tokenizer: TrainedWith, classes: Sequence[str], **sizes: Any) -> TransformerConfig:
    """It gives a text one of these classes."""
    return TransformerConfig(
        kind="encoder",
        head="classifier",
        vocab_size=tokenizer.vocab_size,
        n_classes=len(classes),
        pad_id=tokenizer.pad_id,
        **sizes,
    )


def toy_training(steps: int, lr: float) -> TrainConfig:
    """Of a model that learns in seconds."""
    return TrainConfig(steps=steps, batch_size=64, lr=lr, warmup=50, schedule="linear")
