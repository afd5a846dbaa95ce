"""Scaling of rotary frequencies for texts longer than those of the training."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.plain import PlainData, choice_field, number_field

ROPE_SCALINGS = ("linear", "llama3", "yarn")
FACTORS = (1e-3, 1e6)
LARGEST_MAX_LEN = 1 << 24
"""Rotary models declare millions of positions, and no table grows with them."""


@dataclass(frozen=True)
class RopeScaling(PlainData):
    """How rotary frequencies are scaled; each kind is a function in `SCALINGS`.

    Sources: Extending Context Window by Positional Interpolation (Chen et al. 2023,
    linear); The Llama 3 Herd of Models (2024, llama3); YaRN (Peng et al. 2023).
    """

    kind: str = choice_field("linear", ROPE_SCALINGS)
    factor: float = number_field(1.0, *FACTORS)
    original_len: int = number_field(8192, 1, LARGEST_MAX_LEN)
    """Longest text of the training, in tokens (llama3, yarn)."""
    low_freq_factor: float = number_field(1.0, *FACTORS)
    high_freq_factor: float = number_field(4.0, *FACTORS)
    """llama3 scales pairs that turn less often than the one in `original_len` tokens fully,
    and those that turn more often than the other not at all."""
    beta_fast: float = number_field(32.0, *FACTORS)
    beta_slow: float = number_field(1.0, *FACTORS)
    """The same of yarn."""
    attention_factor: float = number_field(1.0, *FACTORS)
    """What yarn multiplies cosines and sines with."""
    truncate: bool = True
    """Whether yarn rounds the bounds of its ramp to whole pairs."""

    def fault(self) -> str | None:
        if fault := super().fault():
            return fault
        if self.kind == "llama3" and self.high_freq_factor <= self.low_freq_factor:
            return "high_freq_factor must be above low_freq_factor."
        return None


def linear_scaling(
    frequencies: Float[Tensor, " half"], scaling: RopeScaling, theta: float
) -> Float[Tensor, " half"]:
    """All frequencies ÷ factor. Source: Chen et al. 2023, section 2.3."""
    return frequencies / scaling.factor


def llama3_scaling(
    frequencies: Float[Tensor, " half"], scaling: RopeScaling, theta: float
) -> Float[Tensor, " half"]:
    """Low frequencies ÷ factor, high ones as they are, those between mixed. Source: Llama 3."""
    waves = scaling.original_len * frequencies / (2 * math.pi)  # turns in the training's length
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = ((waves - low) / (high - low)).clamp(0, 1)
    return (1 - kept) * frequencies / scaling.factor + kept * frequencies


def yarn_scaling(
    frequencies: Float[Tensor, " half"], scaling: RopeScaling, theta: float
) -> Float[Tensor, " half"]:
    """The same with a linear ramp over the pairs. Source: YaRN (Peng et al. 2023), section 3.2."""
    pairs = len(frequencies)

    def pair_of(turns: float) -> float:
        """The pair that turns this often within the training's length."""
        return pairs * math.log(scaling.original_len / (turns * 2 * math.pi)) / math.log(theta)

    low, high = pair_of(scaling.beta_fast), pair_of(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, 2 * pairs - 1)
    high = high if high != low else high + 0.001
    places = torch.arange(pairs, dtype=torch.float32, device=frequencies.device)
    stretched = ((places - low) / (high - low)).clamp(0, 1)
    return (1 - stretched) * frequencies + stretched * frequencies / scaling.factor


SCALINGS = {"linear": linear_scaling, "llama3": llama3_scaling, "yarn": yarn_scaling}
