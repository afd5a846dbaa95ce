"""Which parts of a model write into the residual stream and which read it, in their order.

Writers are the embedding, every head and every feed-forward layer; readers are the q, k and v
inputs of every head, every feed-forward layer and the logits. An edge goes from a writer to a
reader behind it. Numbers of writers are columns and numbers of readers rows of every matrix of
edges, (r, w).
Source: Towards Automated Circuit Discovery (Conmy et al. 2023), section 3.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

import torch
from torch import Tensor

from explorer.system.limits import EDGES
from models import TransformerConfig

Kind = Literal["embedding", "head", "feed-forward", "logits"]
Reads = Literal["q", "k", "v", ""]
"""Which input of a head is read; empty where a part has only one."""

INPUTS: tuple[Reads, ...] = ("q", "k", "v")


class WiringError(ValueError):
    """Why a model has no edges that add up, in one sentence."""


@dataclass(frozen=True)
class Place:
    """What a row or column stands for: a part, its layer, its head and which input is read."""

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
        """By the site where each value is written, in the order of the pass."""
        found = {f"{self.stack}.0.resid_pre": [Place("embedding")]}
        for layer in range(self.layers):
            at = f"{self.stack}.{layer}"
            heads = [Place("head", layer, head) for head in range(self.heads)]
            found[f"{at}.self_attn.head_out"] = heads
            if self.has_mlp:
                found[f"{at}.mlp.out"] = [Place("feed-forward", layer)]
        return found

    @cached_property
    def readers(self) -> dict[str, list[Place]]:
        """By the site where each input is read, in the order of the pass."""
        found = {}
        for layer in range(self.layers):
            at = f"{self.stack}.{layer}"
            for name in INPUTS:
                heads = [Place("head", layer, head, name) for head in range(self.heads)]
                found[f"{at}.self_attn.{name}_input"] = heads
            if self.has_mlp:
                found[f"{at}.mlp.input"] = [Place("feed-forward", layer)]
        found[f"{self.stack}.{self.layers - 1}.resid_post"] = [Place("logits")]
        return found

    @cached_property
    def columns(self) -> list[Place]:
        return [place for places in self.writers.values() for place in places]

    @cached_property
    def rows(self) -> list[Place]:
        return [place for places in self.readers.values() for place in places]

    @cached_property
    def columns_at(self) -> dict[str, slice]:
        """Which columns the writers of a site are."""
        return _slices(self.writers)

    @cached_property
    def rows_at(self) -> dict[str, slice]:
        """Which rows the readers of a site are."""
        return _slices(self.readers)

    def site_of_writer(self, column: int) -> str:
        return next(site for site, some in self.columns_at.items() if column < some.stop)

    def written_before(self, reader: Place) -> int:
        """How many writers come before this reader: the first so many columns."""
        each = self.heads + self.has_mlp
        if reader.kind == "logits":
            return 1 + self.layers * each
        reads_heads = reader.kind == "feed-forward" and not self.parallel
        return 1 + reader.layer * each + (self.heads if reads_heads else 0)

    @property
    def edges(self) -> int:
        """How many there are, without making any."""
        of_layers = (
            len(INPUTS) * self.heads * self.written_before(Place("head", layer))
            + self.has_mlp * self.written_before(Place("feed-forward", layer))
            for layer in range(self.layers)
        )
        return sum(of_layers) + self.written_before(Place("logits"))

    @cached_property
    def is_edge(self) -> Tensor:
        """Where there is an edge, (r, w)."""
        counts = torch.tensor([self.written_before(place) for place in self.rows])
        return torch.arange(len(self.columns)) < counts[:, None]


def _slices(sites: dict[str, list[Place]]) -> dict[str, slice]:
    ends = [*accumulate(map(len, sites.values()), initial=0)]
    return dict(zip(sites, map(slice, ends, ends[1:]), strict=True))


def wiring_of(config: TransformerConfig) -> Wiring:
    """The wiring of a model of one stack, in which every edge can be cut by itself.

    WiringError where the residual stream is no plain sum of what was written, or there are more
    edges than are scored here.
    """
    if config.kind == "encoder-decoder":
        raise WiringError(
            "Edges are those of one stack, and this model has an encoder and a decoder: the page "
            "Interventions patches its heads."
        )
    normed = {"post": "the residual stream", "sandwich": "what each layer writes"}
    if where := normed.get(config.norm_position):
        raise WiringError(
            f"This model has a norm on {where}, so what a head writes does not reach a later one "
            "unchanged, and there are no edges; its heads and feed-forward layers have scores."
        )
    wiring = plain_wiring(config)
    if not EDGES.allows(wiring.edges):
        raise WiringError(EDGES.refusal(wiring.edges))
    return wiring


def plain_wiring(config: TransformerConfig) -> Wiring:
    """The same for any model of one stack, for its writers alone."""
    stack = "encoder" if config.kind == "encoder" else "decoder"
    layers = config.encoder_layers if stack == "encoder" else config.n_layers
    return Wiring(stack, layers, config.n_heads, config.d_ff > 0, config.parallel)
