"""Rotary positions, and the scaling of their frequencies for texts longer than in training."""

import math
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config_fields import PlainData, choice_field, number_field
from models.positional import Positions
from models.shapes import Rotation

ROPE_SCALINGS = ("linear", "llama3", "yarn")
FACTORS = (1e-3, 1e6)
LARGEST_MAX_LEN = 1 << 24  # rotary models declare millions, and no table grows with them


@dataclass(frozen=True)
class RopeScaling(PlainData):
    """How rotary frequencies are scaled; each kind is a function in `SCALINGS`.

    In `original_len` tokens, the longest text of the training, each pair of numbers turns a number
    of times. llama3 scales a pair fully below `low_freq_factor` turns and not at all above
    `high_freq_factor`; yarn has `beta_slow` and `beta_fast` for these, rounded to whole pairs if
    `truncate`, and multiplies cosines and sines by `attention_factor`.
    Sources: Extending Context Window by Positional Interpolation (Chen et al. 2023,
    linear); The Llama 3 Herd of Models (2024, llama3); YaRN (Peng et al. 2023).
    """

    kind: str = choice_field("linear", ROPE_SCALINGS)
    factor: float = number_field(1.0, *FACTORS)
    original_len: int = number_field(8192, 1, LARGEST_MAX_LEN)
    low_freq_factor: float = number_field(1.0, *FACTORS)
    high_freq_factor: float = number_field(4.0, *FACTORS)
    beta_fast: float = number_field(32.0, *FACTORS)
    beta_slow: float = number_field(1.0, *FACTORS)
    attention_factor: float = number_field(1.0, *FACTORS)
    truncate: bool = True

    def fault(self) -> str | None:
        fault = super().fault()
        if not fault and self.kind == "llama3" and self.high_freq_factor <= self.low_freq_factor:
            return "high_freq_factor must be above low_freq_factor."
        return fault


Frequencies = Float[Tensor, " half"]


def linear_scaling(frequencies: Frequencies, scaling: RopeScaling, theta: float) -> Frequencies:
    """All frequencies ÷ factor. Source: Chen et al. 2023, section 2.3."""
    return frequencies / scaling.factor


def llama3_scaling(frequencies: Frequencies, scaling: RopeScaling, theta: float) -> Frequencies:
    """Low frequencies ÷ factor, high ones unchanged, a mix between. Source: Llama 3."""
    waves = scaling.original_len * frequencies / (2 * math.pi)  # turns in the training's length
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    share = ((waves - low) / (high - low)).clamp(0, 1)
    return (1 - share) * frequencies / scaling.factor + share * frequencies


def yarn_scaling(frequencies: Frequencies, scaling: RopeScaling, theta: float) -> Frequencies:
    """As llama3, but linear in the pairs. Source: YaRN (Peng et al. 2023), section 3.2."""
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


class RotaryPositions(Positions):
    """Rotates each pair of numbers of a query or key by the angle position × θ^(−2i/d).

    A pair is (i, i + d/2) ("halves") or (2i, 2i + 1) ("adjacent"); only the first `d_head`
    numbers of a wider head are rotated. The product of a query and a key then depends on
    their distance alone.
    Source: RoFormer (Su et al. 2021), section 3.2.2.
    """

    def __init__(
        self,
        d_head: int,
        theta: float = 10_000.0,
        pairs: str = "halves",
        scaling: RopeScaling | None = None,
    ) -> None:
        super().__init__()
        self.d_head, self.theta, self.pairs, self.scaling = d_head, theta, pairs, scaling

    def frequencies(self) -> Frequencies:
        """Radians per position of every pair, fast ones first; on the CPU, as all constants."""
        even = torch.arange(0, self.d_head, 2, dtype=torch.float32, device="cpu")
        frequencies = 1.0 / self.theta ** (even / self.d_head)
        if self.scaling is None:
            return frequencies
        return SCALINGS[self.scaling.kind](frequencies, self.scaling, self.theta)

    def rotation(self, positions: Int[Tensor, "*t"]) -> Rotation:
        angles = positions[..., None] * self.frequencies().to(positions.device)
        if angles.dim() == 3:  # one row of positions per sequence: make room for the heads
            angles = angles[:, None]
        stretch = 1.0 if self.scaling is None else self.scaling.attention_factor
        cos, sin = angles.cos() * stretch, angles.sin() * stretch
        return partial(self.turn, cos=cos, sin=sin)

    def turn(
        self, x: Float[Tensor, "b h t d"], cos: Float[Tensor, "..."], sin: Float[Tensor, "..."]
    ) -> Float[Tensor, "b h t d"]:
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        turned, rest = x[..., : self.d_head], x[..., self.d_head :]
        halves = self.pairs == "halves"
        first, second = turned.chunk(2, -1) if halves else (turned[..., 0::2], turned[..., 1::2])
        both = (first * cos - second * sin, second * cos + first * sin)
        joined = torch.cat(both, -1) if halves else torch.stack(both, -1).flatten(-2)
        return torch.cat((joined, rest), -1) if rest.shape[-1] else joined
