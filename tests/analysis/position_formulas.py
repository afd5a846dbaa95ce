"""The oracle of positions: the formulas of the four schemes, written out once more.

Nothing of `models.positional` is used: a mistake there is seen here. Rotary frequencies and
the buckets of distances are in float32, as published, or far angles and the bounds of the
buckets would be others. Only the stretching for longer texts is the model's own.
"""

import math

import torch
from torch import Tensor

from models import TransformerConfig
from models.rope_scaling import SCALINGS

WAVES = 10_000


def sinusoids(places: Tensor, width: int, halves: bool) -> Tensor:
    """(t, d): sin(pos / 10000^(2i/d)) and the cosine beside it, or behind all sines."""
    columns, sines = torch.arange(width), (width + 1) // 2
    is_cosine, pair = (columns >= sines, columns % sines) if halves else (columns % 2, columns // 2)
    angles = places[:, None].double() / WAVES ** (2 * pair.double() / width)
    return torch.where(is_cosine.bool(), angles.cos(), angles.sin())


def frequencies(config: TransformerConfig) -> Tensor:
    """(w / 2) of float32: 1 / θ^(2i/w), how far a pair is turned from one position to the next."""
    width, scaling = config.rotary_width, config.rope_scaling
    powers = torch.tensor([2 * pair for pair in range(width // 2)], dtype=torch.float32) / width
    turns = 1 / config.rope_theta**powers
    return turns if scaling is None else SCALINGS[scaling.kind](turns, scaling, config.rope_theta)


def slope(head: int, heads: int) -> float:
    """2^(−8 (h + 1) / n); of n no power of two, heads beyond the last one stand between those."""
    whole = 1 << (heads.bit_length() - 1)
    steps = head + 1 if head < whole else head - whole + 0.5
    return float(2 ** (-8 * steps / whole))


def buckets(offsets: Tensor, config: TransformerConfig, causal: bool) -> Tensor:
    """Key − query in buckets: near distances one by one, far ones by their logarithm."""
    count = config.n_buckets if causal else config.n_buckets // 2
    near = count // 2
    apart = (-offsets).clamp(min=0) if causal else offsets.abs()
    part = torch.log(apart.clamp(min=near).float() / near) / math.log(config.max_distance / near)
    far = (near + (part * (count - near)).long()).clamp(max=count - 1)
    bucket = torch.where(apart < near, apart, far)
    return bucket if causal else bucket + count * (offsets > 0)
