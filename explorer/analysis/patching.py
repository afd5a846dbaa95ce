"""Values of another text's pass put into a recorded one: each head, feed-forward, the embedding.

Exact activation patching: every number comes from a pass of its own, as a branch of the recorded
one. Where the two texts begin alike and no query attends to later keys, `from_position` of the
recorded pass is `shared_tokens`, and only the tokens from there on are computed. Source:
Investigating Gender Bias in Language Models Using Causal Mediation Analysis (Vig et al. 2020);
Interpretability in the Wild (Wang et al. 2022), section 3.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from explorer.analysis.ablation import RecordedPass, ablate_every_head, run_branches, run_layers
from explorer.analysis.wiring import Place, Reads, Wiring
from models.interventions import Edit, Replace
from models.stack import Stack
from models.trace import Trace

Edge = tuple[int, int]
"""A reader and a writer by their places in the wiring."""


def edges_from(wiring: Wiring, layer: int, head: int, reads: Reads) -> list[Edge]:
    """From this head into this input of every later head, every later feed-forward, the logits."""
    writer = wiring.columns.index(Place("head", layer, head))
    return [
        (row, writer)
        for row, place in enumerate(wiring.rows)
        if wiring.is_edge[row, writer] and (place.kind != "head" or place.reads == reads)
    ]


def edges_into(wiring: Wiring, layer: int, head: int, reads: Reads) -> list[Edge]:
    """Into this input of this head from the embedding, every earlier head and feed-forward."""
    row = wiring.rows.index(Place("head", layer, head, reads))
    return [(row, writer) for writer in range(wiring.written_before(wiring.rows[row]))]


def edge_grid(wiring: Wiring, ends: Sequence[Place], values: Sequence[float]) -> Tensor:
    """Values by the head and layer at the free ends of edges, (heads + feed-forward, layers).

    The last row is the feed-forward layer, where there is one; NaN where there is no edge.
    """
    grid = torch.full((wiring.heads + wiring.has_mlp, wiring.layers), torch.nan)
    for place, value in zip(ends, values, strict=True):
        if place.kind in ("head", "feed-forward"):
            grid[place.head if place.kind == "head" else wiring.heads, place.layer] = value
    return grid


PATCHED_SITES = ("*.head_out", "*.mlp.out", "*.0.resid_pre")
"""What the pass that is patched from must hold."""


def shared_tokens(clean: Tensor, corrupted: Tensor) -> int:
    """How many IDs two texts (…, t) of the same length begin with in common."""
    differ = (clean != corrupted).flatten(0, -2).any(0)
    return int(differ.int().argmax()) if differ.any() else len(differ)


def patch_every_head(base: RecordedPass, other: Trace, part: str, layers: int) -> Iterator[Tensor]:
    """For each layer the logits (heads, options); in row i head i wrote what it did in `other`."""
    stack, attention = part.split(".")

    def patched(layer: int) -> Tensor:
        return other[f"{stack}.{layer}.{attention}.head_out"][0]

    return ablate_every_head(base, part, layers, patched)


def patch_feed_forwards(base: RecordedPass, other: Trace, stack: str) -> Iterator[Tensor]:
    """For each layer the logits (1, options) where its feed-forward wrote what it did in `other`.

    Nothing for a model without feed-forward layers.
    """
    blocks: Stack = getattr(base.model, stack)
    layers = len(blocks.blocks) if blocks.blocks[0].mlp is not None else 0
    part = f"{stack}.self_attn"

    def edit_of(layer: int, rows: range) -> Edit:
        return _replaced(base, other, part, f"{stack}.{layer}.mlp.out")

    return run_layers(base, part, range(layers), 1, edit_of)


def patch_embedding(base: RecordedPass, other: Trace, stack: str) -> Tensor:
    """The logits (1, options) where the first layer of this stack read what it did in `other`."""
    part = f"{stack}.self_attn"
    edit = _replaced(base, other, part, f"{stack}.0.resid_pre")
    return run_branches(base, part, 0, 1, lambda rows: edit)


def _replaced(base: RecordedPass, other: Trace, part: str, site: str) -> Edit:
    return Replace(site, other[site][:, base.start(part) :])
