"""The writers and readers of the residual stream, and the edges between them.

Writers are the embedding, every head and every feed-forward layer; readers are the q, k and v
inputs of every head, every feed-forward layer and the logits. An edge goes from a writer to a
later reader. In every matrix of edges, (r, w), rows are readers and columns are writers, in the
order of the pass. A circuit is a graph of such edges.
Source: Towards Automated Circuit Discovery (Conmy et al. 2023), section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

import torch
from torch import Tensor

from explorer.analysis.forward_pass.stages import stages_of
from explorer.system.limits import EDGES
from models import TransformerConfig
from models.config_fields import PlainData, number_field

Kind = Literal["embedding", "head", "feed-forward", "logits"]
Reads = Literal["q", "k", "v", ""]
"""The input of a head; empty for a part with one input."""

INPUTS: tuple[Reads, ...] = ("q", "k", "v")


class WiringError(ValueError):
    """The reason why a model has no edges that add up, in one sentence."""


@dataclass(frozen=True)
class Place:
    """A row or column of a matrix of edges: a part, its layer, its head and its input."""

    kind: Kind
    layer: int = 0
    head: int = 0
    reads: Reads = ""


@dataclass(frozen=True)
class Wiring:
    """The writers and readers of a model of one stack."""

    stack: str
    layers: int
    heads: int
    has_mlp: bool
    parallel: bool

    @cached_property
    def writers(self) -> dict[str, list[Place]]:
        """The writers by the site of their values, in the order of the pass."""
        by_site = {f"{self.stack}.0.resid_pre": [Place("embedding")]}
        for layer in range(self.layers):
            at = f"{self.stack}.{layer}"
            heads = [Place("head", layer, head) for head in range(self.heads)]
            by_site[f"{at}.self_attn.head_out"] = heads
            if self.has_mlp:
                by_site[f"{at}.mlp.out"] = [Place("feed-forward", layer)]
        return by_site

    @cached_property
    def readers(self) -> dict[str, list[Place]]:
        """The readers by the site of their inputs, in the order of the pass."""
        by_site = {}
        for layer in range(self.layers):
            at = f"{self.stack}.{layer}"
            for name in INPUTS:
                heads = [Place("head", layer, head, name) for head in range(self.heads)]
                by_site[f"{at}.self_attn.{name}_input"] = heads
            if self.has_mlp:
                by_site[f"{at}.mlp.input"] = [Place("feed-forward", layer)]
        by_site[f"{self.stack}.{self.layers - 1}.resid_post"] = [Place("logits")]
        return by_site

    @cached_property
    def columns(self) -> list[Place]:
        return [place for places in self.writers.values() for place in places]

    @cached_property
    def rows(self) -> list[Place]:
        return [place for places in self.readers.values() for place in places]

    @cached_property
    def columns_at(self) -> dict[str, slice]:
        return _slices(self.writers)

    @cached_property
    def rows_at(self) -> dict[str, slice]:
        return _slices(self.readers)

    def writers_before(self, reader: Place) -> int:
        """The number of writers before this reader, which are the first columns."""
        per_layer = self.heads + self.has_mlp
        if reader.kind == "logits":
            return 1 + self.layers * per_layer
        reads_heads = reader.kind == "feed-forward" and not self.parallel
        return 1 + reader.layer * per_layer + (self.heads if reads_heads else 0)

    @property
    def edges(self) -> int:
        """The number of edges, without a matrix of them."""
        of_layers = (
            len(INPUTS) * self.heads * self.writers_before(Place("head", layer))
            + self.has_mlp * self.writers_before(Place("feed-forward", layer))
            for layer in range(self.layers)
        )
        return sum(of_layers) + self.writers_before(Place("logits"))

    @cached_property
    def is_edge(self) -> Tensor:
        """Where there is an edge, (r, w)."""
        counts = torch.tensor([self.writers_before(place) for place in self.rows])
        return torch.arange(len(self.columns)) < counts[:, None]


def _slices(sites: dict[str, list[Place]]) -> dict[str, slice]:
    ends = [*accumulate(map(len, sites.values()), initial=0)]
    return dict(zip(sites, map(slice, ends, ends[1:]), strict=True))


NORMED = {"stream norm": "the residual stream", "output norm": "what each layer writes"}
"""Kinds of stage that change what a part wrote, so that later parts do not read it as it was."""


def wiring_of(config: TransformerConfig) -> Wiring:
    """The wiring of a model of one stack, in which every edge can be cut by itself.

    WiringError where the residual stream is no plain sum of all writes, or has too many edges.
    """
    if config.kind == "encoder-decoder":
        raise WiringError(
            "Edges are those of one stack, and this model has an encoder and a decoder: the page "
            "Interventions patches its heads."
        )
    kinds = {stage.kind for stage in stages_of(config) if stage.layer is not None}
    for kind, where in NORMED.items():
        if kind in kinds:
            raise WiringError(
                f"This model has a norm on {where}, so what a head writes does not reach a later "
                "one unchanged, and there are no edges; its heads and feed-forward layers have "
                "scores."
            )
    wiring = plain_wiring(config)
    EDGES.check(wiring.edges, WiringError)
    return wiring


def plain_wiring(config: TransformerConfig) -> Wiring:
    """The wiring of any model of one stack, whose writers hold even where edges do not."""
    stack = "encoder" if config.kind == "encoder" else "decoder"
    layers = config.encoder_layers if stack == "encoder" else config.n_layers
    return Wiring(stack, layers, config.n_heads, config.d_ff > 0, config.parallel)


@dataclass(frozen=True, order=True)
class CircuitNode(PlainData):
    """A part that writes into the residual stream or reads it; `head` is 0 for other parts."""

    kind: Kind
    layer: int = number_field(0, 0, 2**53)
    head: int = number_field(0, 0, 2**53)

    @property
    def title(self) -> str:
        """The title on screen: 23.3 is head 3 of layer 23."""
        if self.kind == "head":
            return f"{self.layer}.{self.head}"
        return f"MLP {self.layer}" if self.kind == "feed-forward" else self.kind


@dataclass(frozen=True)
class Edge(PlainData):
    """What `target` reads of what `source` wrote, in the residual stream of each position.

    `estimate` is the part of the metric that it carries by attribution, the mean over the pairs,
    and `spread` its standard deviation over them. `exact` is measured by patching, or None.
    """

    source: CircuitNode
    target: CircuitNode
    reads: Reads
    estimate: float
    spread: float | None = None
    exact: float | None = None

    @property
    def title(self) -> str:
        to = f"{self.target.title} {self.reads}".strip()
        return f"{self.source.title} → {to}"


def edges_from(wiring: Wiring, layer: int, head: int, reads: Reads) -> list[tuple[int, int]]:
    """The edges from this head to this input of later heads, later feed-forward layers, logits."""
    writer = wiring.columns.index(Place("head", layer, head))
    return [
        (row, writer)
        for row, place in enumerate(wiring.rows)
        if wiring.is_edge[row, writer] and (place.kind != "head" or place.reads == reads)
    ]


def edges_into(wiring: Wiring, layer: int, head: int, reads: Reads) -> list[tuple[int, int]]:
    """The edges into this input of this head, from the embedding and all earlier parts."""
    row = wiring.rows.index(Place("head", layer, head, reads))
    return [(row, writer) for writer in range(wiring.writers_before(wiring.rows[row]))]


def edge_grid(wiring: Wiring, ends: Sequence[Place], values: Sequence[float]) -> Tensor:
    """Values of edges by the head and layer of their free `ends`, (heads + feed-forward, layers).

    The last row is the feed-forward layer, where there is one; NaN where there is no edge.
    """
    grid = torch.full((wiring.heads + wiring.has_mlp, wiring.layers), torch.nan)
    for place, value in zip(ends, values, strict=True):
        if place.kind in ("head", "feed-forward"):
            grid[place.head if place.kind == "head" else wiring.heads, place.layer] = value
    return grid
