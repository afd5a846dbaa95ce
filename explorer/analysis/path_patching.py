"""Path patching: what one part tells another directly, and what of the output hangs on it.

The receiver reads what the sender wrote for the corrupted text; everything else on the way there
is that of the clean text, and everything behind the receiver follows from it. Such a path is an
edge of `explorer.analysis.wiring`, whose exact value `explorer.analysis.exact_edges` measures.
Sources: Interpretability in the Wild (Wang et al. 2022), section 3; Localizing Model Behavior with
Path Patching (Goldowsky-Dill et al. 2023), section 3.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from explorer.analysis.wiring import Place, Reads, Wiring

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
