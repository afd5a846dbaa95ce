"""The metrics of the tasks, by parts of a batch: each is a sum, over a number of rows or labels."""

import math
from collections.abc import Callable, Iterator

import torch

from explorer.system.cooperative import interruptible
from models.losses import IGNORE, cross_entropy
from models.model import Transformer
from models.training import Batch
from models.transformer import evaluating

Score = tuple[float, int]
"""The sum of a metric over a batch, and how many rows or labels it is over."""
Metric = Callable[[Transformer, Batch], Score]

LARGEST_PART = 64
"""Rows of one part, at most."""
PART_OPERATIONS = 5e9
"""Floating-point operations of one part, unless a single row has more: about 0.2 s of one core."""


def exact_match(model: Transformer, batch: Batch) -> Score:
    """The rows in which every label is the likeliest token.

    For an autoregressive model their share equals that of the answers
    that greedy decoding gets right: up to the first mistake both read the same tokens.
    """
    right, counted = _right(model, batch)
    return int((right | ~counted).all(-1).sum()), len(right)


def token_accuracy(model: Transformer, batch: Batch) -> Score:
    """The labels that are the likeliest token."""
    right, counted = _right(model, batch)
    return int(right[counted].sum()), int(counted.sum())


def accuracy(model: Transformer, batch: Batch) -> Score:
    """The rows whose class is right."""
    right, _ = _right(model, batch)
    return int(right.sum()), len(right)


def nats_per_token(model: Transformer, batch: Batch) -> Score:
    """The −log p of the labels."""
    batch = on_device(model, batch)
    with evaluating(model):
        labelled = int(batch.n_labels)
        return cross_entropy(model(*batch.inputs), batch.labels).item() * labelled, labelled


def by_parts(metric: Metric, model: Transformer, batch: Batch) -> Iterator[tuple[int, float]]:
    """The rows that are read and the metric over them, after each part of the batch.

    The parts bound the memory and the time between two cooperative steps. A batch without rows
    yields 0 and NaN.
    """
    if not len(batch.labels):
        yield 0, math.nan
    tokens, config = sum(ids.shape[1] for ids in batch.inputs), model.config
    attention = 2 * config.n_layers * config.d_model * tokens
    of_a_row = 2 * tokens * (model.n_parameters + attention)
    some = max(1, min(LARGEST_PART, int(PART_OPERATIONS / of_a_row)))
    total, count = 0.0, 0
    for start in interruptible(range(0, len(batch.labels), some)):
        part = batch.rows(slice(start, start + some))
        score, of = metric(model, part)
        total, count = total + score, count + of
        yield start + len(part.labels), total / max(1, count)


def value_of(metric: Metric, model: Transformer, batch: Batch) -> float:
    *_, (_, value) = by_parts(metric, model, batch)
    return value


PARTS = 16


def standard_error(metric: Metric, model: Transformer, batch: Batch) -> float:
    """How far a metric is off because the batch is no larger: from those of random parts of it."""
    order = torch.randperm(len(batch.labels), generator=torch.Generator().manual_seed(0))
    parts = batch.rows(order).parts(PARTS)
    values = torch.tensor([value_of(metric, model, part) for part in parts])
    return float(values.std() / len(values) ** 0.5) if len(values) > 1 else math.nan


def _right(model: Transformer, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    batch = on_device(model, batch)
    with evaluating(model):
        best = model(*batch.inputs).argmax(-1)
    return best == batch.labels, batch.labels != IGNORE


def on_device(model: Transformer, batch: Batch) -> Batch:
    return batch.to(next(model.parameters()).device)
