"""The schemes of positions as tensors.

A scheme adds a vector to the embedding (sinusoidal, learned), rotates queries and keys
(rotary), or adds a bias to the scores (relative, ALiBi). `table` has one row per position,
`products` one number per pair of positions. The end of the file measures a common mistake, a
doubled exponent of the sinusoids, against the right formula.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models import Transformer, TransformerConfig
from models.model import NoInitialization
from models.position_biases import AlibiPositions, RelativePositions
from models.positional import LearnedPositions, Positions, sinusoids
from models.rotary import RotaryPositions

SCHEMES = {
    "sinusoidal": "Sinusoidal",
    "learned": "Learned",
    "rotary": "Rotary",
    "relative": "Relative",
    "alibi": "ALiBi",
    "none": "None",
}
EXPLANATIONS = {
    "sinusoidal": "Each pair of dimensions is a sine and a cosine of one frequency, highest "
    "first. The position vector is added to the token embedding. The dot product of two "
    "position vectors depends only on their distance.",
    "learned": "Each position has its own trained vector, which is added to the token "
    "embedding; nothing about distance is built in.",
    "rotary": "Nothing is added. Each pair of dimensions of a query or key is rotated by an angle "
    "that grows with the position; shown is a rotated vector of ones. The dot product of a query "
    "and a key then depends on their positions only through the distance.",
    "relative": "Nothing is added to the embeddings. Each score gets a trained bias for the "
    "distance, one per head; short distances have a bucket each, long ones share buckets (T5).",
    "alibi": "Nothing is added to the embeddings. Each score is lowered in proportion to the "
    "distance of the key, with a different slope in each head.",
    "none": "The model gets no position information. Without a causal mask, another order of the "
    "tokens gives each of them the same vector.",
}

COSINE = "cosine similarity"
ROUNDING = 1e-5
"""Products that differ by a smaller share of the largest one differ by float32 rounding only."""

CODE: dict[str, Callable[..., Any]] = {
    "sinusoidal": sinusoids,
    "learned": LearnedPositions,
    "rotary": RotaryPositions,
    "relative": RelativePositions,
    "alibi": AlibiPositions,
    "none": Positions,
}


@dataclass(frozen=True)
class PositionScheme:
    """One scheme. `table` is (positions, dimensions), or None where no vector is added."""

    name: str
    table: Tensor | None
    products: Tensor
    pairs: tuple[tuple[int, int], ...]
    wavelengths: tuple[float, ...] = ()
    by_head: tuple[tuple[str, int, float], ...] = ()
    unit: str = "product"

    @property
    def title(self) -> str:
        return "a vector of ones, rotated" if self.name == "rotary" else "position vectors"

    def by_cosine(self) -> "PositionScheme":
        """The scheme with cosine similarities of position vectors instead of dot products."""
        if self.table is None:
            return self
        unit = torch.nn.functional.normalize(self.table, dim=-1)
        return replace(self, products=unit @ unit.T, unit=COSINE)

    def hand(self, pair: int) -> Tensor:
        """The point (x, y) of a pair of dimensions at every position, (positions, 2).

        A sine is its height and the cosine its width; a rotated pair is drawn as it is.
        """
        assert self.table is not None, "only a scheme with a table has pairs"
        first, second = self.pairs[pair]
        across, up = (first, second) if self.name == "rotary" else (second, first)
        return self.table[:, [across, up]]

    def wave(self, pair: int) -> list[dict[str, float | str]]:
        """One pair of dimensions over the positions, a row for each point."""
        assert self.table is not None, "only a scheme with a table has pairs"
        return [
            {"position": place, "value": float(value), "dimension": f"dimension {dimension}"}
            for dimension in self.pairs[pair]
            for place, value in enumerate(self.table[:, dimension])
        ]

    def against_offset(self) -> list[tuple[int, float, float, float]]:
        """Every offset, with the smallest, mean and largest product of positions that far apart."""
        rows = []
        for offset in range(len(self.products)):
            values = self.products.diagonal(-offset)
            rows.append((offset, float(values.min()), float(values.mean()), float(values.max())))
        return rows

    @property
    def spread(self) -> float:
        """The largest difference between products of positions with the same offset."""
        return max(largest - smallest for _, smallest, _, largest in self.against_offset())

    @property
    def knows_distance(self) -> bool:
        """Whether the product of two positions follows from their distance alone."""
        return self.spread <= ROUNDING * float(self.products.abs().max())


def position_module(model: Transformer, stack: str = "") -> Positions:
    """The positions of this stack, or of the only one; by default the decoder's of two."""
    part = model.encoder if stack == "encoder" else model.decoder
    return (part or model.last_stack).positions


def learned_table(model: Transformer, stack: str = "") -> Tensor | None:
    """The trained positions of a model, or None when it has none."""
    positions = position_module(model, stack)
    if not isinstance(positions, LearnedPositions):
        return None
    return positions.table.weight.detach()[positions.offset :]


def position_scheme(
    name: str,
    model: Transformer,
    count: int,
    head: int = 0,
    stack: str = "",
    width: int | None = None,
) -> "PositionScheme | None":
    """The scheme at the sizes of this model; None where the model has no such positions.

    Sinusoids need no trained numbers, so they may have another `width`.
    """
    config, places = model.config, torch.arange(count)
    if name == "sinusoidal":
        halves = config.positions == name and config.pairs == "halves"
        width = width or config.d_model
        table = sinusoids(places, width, "halves" if halves else "adjacent")
        wavelengths = 2 * torch.pi * 10_000.0 ** (torch.arange(0, width, 2) / width)
        return _with_table(name, table, tuple(wavelengths.tolist()), halves=halves)
    if name == "learned":
        learned = learned_table(model, stack)
        return None if learned is None else _with_table(name, learned[:count])
    if name == "rotary":
        return _turned(config, places)
    if name == "relative":
        return _relative(model, places, head, stack)
    if name == "alibi":
        alibi = AlibiPositions(config.n_heads)
        bias = alibi.bias(places, places)[0, head % config.n_heads]
        lines = tuple(
            (f"head {index}", offset, -slope * offset)
            for index, slope in enumerate(alibi.slopes().tolist())
            for offset in range(count)
        )
        return PositionScheme(name, None, bias, (), by_head=lines, unit="bias")
    return PositionScheme(name, None, torch.zeros(count, count), ())


def _with_table(
    name: str, table: Tensor, wavelengths: tuple[float, ...] = (), *, halves: bool = False
) -> "PositionScheme":
    width = table.shape[1]
    step, gap = (1, (width + 1) // 2) if halves else (2, 1)
    pairs = tuple((i * step, i * step + gap) for i in range(width // 2))
    return PositionScheme(name, table, table @ table.T, pairs, wavelengths)


def _relative(model: Transformer, places: Tensor, head: int, stack: str) -> "PositionScheme":
    """The trained bias of every distance, or its bucket in a model without trained ones."""
    config, module = model.config, position_module(model, stack)
    ahead = len(places) - 1
    offsets = torch.arange(-ahead, ahead + 1)  # the key's position − the query's
    if isinstance(module, RelativePositions):
        bias = module.bias(places, places).detach()[0, head % config.n_heads]
        by_bucket = module.table.weight.detach()[module.buckets(offsets)]
        lines = tuple(
            (f"head {index}", -offset, float(by_bucket[at, index]))
            for index in range(config.n_heads)
            for at, offset in enumerate(offsets.tolist())
            if offset <= 0 or not module.causal
        )
        return PositionScheme("relative", None, bias, (), by_head=lines, unit="bias")
    causal = stack != "encoder" and config.kind != "encoder"
    # Its table stays empty: the model has no trained biases to show.
    with torch.device("meta"), NoInitialization():  # filling it would load torch's compiler
        bare = RelativePositions(config.n_heads, config.n_buckets, config.max_distance, causal)
    buckets = bare.buckets(places[None] - places[:, None])
    lines = tuple(
        ("bucket", -offset, float(number))
        for offset, number in zip(offsets.tolist(), bare.buckets(offsets).tolist(), strict=True)
        if offset <= 0 or not causal
    )
    return PositionScheme("relative", None, buckets.float(), (), by_head=lines, unit="bucket")


def _turned(config: TransformerConfig, places: Tensor) -> "PositionScheme | None":
    width = config.rotary_width - config.rotary_width % 2
    if width == 0:
        return None
    rotary = RotaryPositions(
        width, config.rope_theta, config.pairs or "halves", config.rope_scaling
    )
    table = rotary.rotation(places)(torch.ones(1, 1, len(places), width))[0, 0]
    wavelengths = (2 * torch.pi / rotary.frequencies()).tolist()
    return _with_table("rotary", table, tuple(wavelengths), halves=rotary.pairs == "halves")


DOCUMENT = {"d_model": 512, "places": 60, "offset": 5}
"""The size at which the mistake is measured: width, positions, and a distance."""
STILL = 0.01
"""A dimension that varies by less than this over all positions is almost constant."""


def doubled_sinusoids(positions: Int[Tensor, " t"], d_model: int) -> Float[Tensor, "t d"]:
    """sin(pos / 10000^(2i/d)) and cos(pos / 10000^(2(i+1)/d)) for i = 0, 2, 4, …, in float64.

    The exponent is twice that of `sinusoids`, a common mistake.
    """
    i = torch.arange(0, d_model, 2, dtype=torch.float64)
    sines = (positions[:, None] / 10_000 ** (2 * i / d_model)).sin()
    cosines = (positions[:, None] / 10_000 ** (2 * (i + 1) / d_model)).cos()
    return torch.stack((sines, cosines), -1).flatten(-2)[:, :d_model]


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """A table of positions (t, d) and the measurements that reveal the mistake.

    `first` are the first four dimensions of position 1, `still` counts those that vary by less
    than `STILL` over all positions, `spread` is the standard deviation of the products of two
    positions `offset` apart: 0 where the product depends on the distance alone.
    """

    table: Tensor
    first: tuple[float, ...]
    still: int
    spread: float


def measure_table(table: Tensor, offset: int) -> MeasuredTable:
    """The measurements of a table of at least `offset` + 2 positions."""
    still = (table.max(0).values - table.min(0).values) < STILL
    products = (table[:-offset] * table[offset:]).sum(-1)
    first = tuple(table[1, :4].tolist())
    return MeasuredTable(table, first, int(still.sum()), float(products.std()))


def right_and_doubled(
    d_model: int, places: int, offset: int
) -> tuple[MeasuredTable, MeasuredTable]:
    """The measurements of the formula of the paper, and of the one with a doubled exponent."""
    positions = torch.arange(places)
    right, doubled = sinusoids(positions, d_model), doubled_sinusoids(positions, d_model)
    return measure_table(right, offset), measure_table(doubled, offset)
