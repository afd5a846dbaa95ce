"""Whether an attention map is faithful: its strongest edges cut, beside as many random ones.

A cut edge carries nothing, and the rest of its row stays as it is. If the map is a faithful
account of the head, cutting its strongest edges changes the output more than cutting random
ones does. Source: Is Attention Interpretable? (Serrano and Smith 2019), section 3; the random
edges are their control.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.batch_edits import KeepCells
from explorer.analysis.batched_passes import MOST, RecordedPass, multiplications, run_branches
from explorer.analysis.output_change import kl, logits_at
from explorer.catalog.attention_parts import site
from models.interventions import Edit

DRAWS = 8
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
MOST_EDGES = 1 << 22
MOST_WEIGHTS = 1 << 24
"""Of all heads of the layer, which every pass holds, and a pattern as large beside them."""
PER_WEIGHT = 500
"""Multiplications that take as long as one weight that is made, cut and read, not fused."""
TOO_MANY = "There are too many edges in so long a text: shorten it."
TOO_LONG_FOR_CIRCUITS = (
    "So many passes of this model take too long: shorten the text, or choose a later layer."
)


class TooManyEdgesError(ValueError):
    """The text is too long for this; one sentence."""


@dataclass(frozen=True)
class Faithfulness:
    """KL in nats after cutting `counts[i]` edges: `strongest` (n,), `random` (n, draws)."""

    counts: tuple[int, ...]
    strongest: Tensor
    random: Tensor
    edges: int


def cutting_cost(
    base: RecordedPass, part: str, layer: int, head: int | None, draws: int = DRAWS
) -> int:
    """The most multiplications `faithfulness` can take; TooManyEdgesError where too many."""
    at, heads = site(part, layer), base.model.config.n_heads
    cells = base.trace[f"{at}.q"].shape[2] * base.trace[f"{at}.k"].shape[2]
    edges = cells * (heads if head is None else 1)
    if edges > MOST_EDGES or cells * heads > MOST_WEIGHTS:
        raise TooManyEdgesError(TOO_MANY)
    passes = sum(count < edges for count in COUNTS) * (1 + draws) + 1
    found = passes * (multiplications(base, part, layer) + PER_WEIGHT * heads * cells)
    if found > MOST:
        raise TooManyEdgesError(TOO_LONG_FOR_CIRCUITS)
    return found


def faithfulness(
    base: RecordedPass,
    part: str,
    layer: int,
    head: int | None,
    seed: int = 0,
    draws: int = DRAWS,
    report: Callable[[float], None] = lambda done: None,
) -> Faithfulness:
    """What cutting more and more edges of a head (None: of the layer) does at one position.

    Edges are the cells with any weight. About 10 × (1 + draws) passes that share what lies
    before the layer, in batches of a bounded size; `report` gets the share that is done.
    TooManyEdgesError where `cutting_cost` finds too much.
    """
    cutting_cost(base, part, layer, head, draws)
    at = site(part, layer)
    weights = base.trace.weights(at)[0] if head is None else base.trace.weights(at, head)
    flat = weights.flatten()
    edges = flat.nonzero()[:, 0]
    strongest = edges[flat[edges].argsort(descending=True, stable=True)]
    counts = counts_for(len(edges))
    if not counts:
        return Faithfulness((), weights.new_zeros(0), weights.new_zeros(0, draws), 0)
    generator = torch.Generator().manual_seed(seed)
    random = [
        edges[torch.randperm(len(edges), generator=generator)[: COUNTS[-1]]] for _ in range(draws)
    ]
    cuts = [order[:count] for count in counts[:-1] for order in (strongest, *random)]
    cuts.append(strongest)  # all are all, in whichever order
    heads = base.model.config.n_heads

    def edit_of(rows: range) -> Edit:
        kept = _kept_cells([cuts[row] for row in rows], weights, head, heads)
        return KeepCells(f"{at}.weights", kept)

    widest = 2 * heads * weights.shape[-2] * weights.shape[-1]
    logits = run_branches(base, part, layer, len(cuts), edit_of, widest, report)
    found = kl(logits_at(base.trace, base.position), logits)
    found = torch.cat([found, found[-1:].expand(draws)]).view(len(counts), 1 + draws)
    return Faithfulness(counts, found[:, 0], found[:, 1:], len(edges))


def counts_for(edges: int) -> tuple[int, ...]:
    """How many edges are cut at each point: powers of two, and all."""
    return tuple(sorted({*(count for count in COUNTS if count < edges), edges} - {0}))


def _kept_cells(cuts: Sequence[Tensor], weights: Tensor, head: int | None, heads: int) -> Tensor:
    """One where an edge is kept, zero where it is cut, (rows, heads, queries, keys)."""
    kept = weights.new_ones(len(cuts), heads, *weights.shape[-2:])
    of_head = kept if head is None else kept[:, head]
    for row, cut in enumerate(cuts):
        of_head[row].view(-1)[cut] = 0.0
    return kept
