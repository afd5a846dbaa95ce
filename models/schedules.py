"""The learning rate of every step: a straight warm-up, then one of the schedules."""

import math

SCHEDULES = ("constant", "linear", "cosine", "inverse square root")


def scheduled_rate(schedule: str, lr: float, step: int, steps: int, warmup: int) -> float:
    """The rate of the update after `step` earlier ones, where `lr` is the highest.

    Source of the cosine: SGDR (Loshchilov and Hutter 2017), section 3.
    """
    if step < warmup:
        return lr * (step + 1) / warmup
    if schedule == "inverse square root":
        return lr * math.sqrt(max(1, warmup) / (step + 1))
    done = (step - warmup) / max(1, steps - warmup)
    if schedule == "linear":
        return lr * (1 - done)
    if schedule == "cosine":
        return lr * (1 + math.cos(math.pi * done)) / 2
    return lr


def peak_rate(d_model: int, warmup: int) -> float:
    """The `lr` that makes "inverse square root" the paper's schedule.

    d_model^−0.5 · min(step^−0.5, step · warmup^−1.5) is highest at step = warmup.
    Source: Attention Is All You Need, section 5.3.
    """
    return float((d_model * warmup) ** -0.5)
