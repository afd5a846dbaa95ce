"""The learning rate of every step: a straight warm-up, then one of the schedules."""

import math

from models.config import TrainConfig


def learning_rate(config: TrainConfig, step: int) -> float:
    """The rate of the update after `step` earlier ones.

    Source of the cosine: SGDR (Loshchilov and Hutter 2017), section 3.
    """
    lr, warmup = config.lr, config.warmup
    if step < warmup:
        return lr * (step + 1) / warmup
    if config.schedule == "inverse square root":
        return lr * math.sqrt(max(1, warmup) / (step + 1))
    done = (step - warmup) / max(1, config.steps - warmup)
    if config.schedule == "linear":
        return lr * (1 - done)
    if config.schedule == "cosine":
        return lr * (1 + math.cos(math.pi * done)) / 2
    return lr
