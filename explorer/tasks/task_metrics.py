"""The metrics of the tasks, each in one forward pass."""

import math
from collections.abc import Callable

import torch

from models.losses import IGNORE, cross_entropy
from models.model import Transformer
from models.training import Batch
from models.transformer import evaluating


def exact_match(model: Transformer, batch: Batch) -> float:
    """The share of rows in which every label is the likeliest token.

    For an autoregressive model this equals the share of answers
    that greedy decoding gets right: up to the first mistake both read the same tokens.
    """
    right, counted = _right(model, batch)
    return (right | ~counted).all(-1).float().mean().item()


def token_accuracy(model: Transformer, batch: Batch) -> float:
    """The share of labels that are the likeliest token."""
    right, counted = _right(model, batch)
    return right[counted].float().mean().item()


def accuracy(model: Transformer, batch: Batch) -> float:
    """The share of rows whose class is right."""
    batch = on_device(model, batch)
    with evaluating(model):
        return (model(*batch.inputs).argmax(-1) == batch.labels).float().mean().item()


def nats_per_token(model: Transformer, batch: Batch, rows: int = 64) -> float:
    """Mean −log p of the labels; it reads `rows` rows at a time to bound the memory."""
    total, count, batch = 0.0, 0, on_device(model, batch)
    with evaluating(model):
        for start in range(0, len(batch.labels), rows):
            labels = batch.labels[start : start + rows]
            logits = model(*(part[start : start + rows] for part in batch.inputs))
            labelled = int((labels != IGNORE).sum())
            total += cross_entropy(logits, labels).item() * labelled
            count += labelled
    return total / max(1, count)


PARTS = 16


def standard_error(
    metric: Callable[[Transformer, Batch], float], model: Transformer, batch: Batch
) -> float:
    """How far a metric is off because the batch is no larger: from those of random parts of it."""
    order = torch.randperm(len(batch.labels), generator=torch.Generator().manual_seed(0))
    shuffled = Batch(tuple(ids[order] for ids in batch.inputs), batch.labels[order])
    values = torch.tensor([metric(model, part) for part in shuffled.parts(PARTS)])
    return float(values.std() / len(values) ** 0.5) if len(values) > 1 else math.nan


def _right(model: Transformer, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    batch = on_device(model, batch)
    with evaluating(model):
        best = model(*batch.inputs).argmax(-1)
    return best == batch.labels, batch.labels != IGNORE


def on_device(model: Transformer, batch: Batch) -> Batch:
    """The batch on the model's device."""
    return batch.to(next(model.parameters()).device)
