"""Faithfulness of an attention map: the effect of cutting its strongest edges, or random ones.

A cut edge carries nothing, and the rest of its row stays as it is. If the map describes the head
faithfully, cutting its strongest edges changes the output more than cutting random ones does.
Source: Is Attention Interpretable? (Serrano and Smith 2019), section 3; the random edges are
their control.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.batch_edits import KeepCells
from explorer.analysis.batched_passes import MOST, RecordedPass, multiplications, run_branches
from explorer.analysis.output_change import divergence, logits_at
from explorer.catalog.attention_parts import site
from explorer.system.cooperative import Report
from models.interventions import Edit

DRAWS = 8
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
MOST_EDGES = 1 << 22
MOST_WEIGHTS = 1 << 24
"""The most weights of all heads of the layer: every pass holds them, and a mask as large."""
PER_WEIGHT = 500
"""Multiplications that take as long as computing, cutting and reading one weight, not fused."""
TOO_MANY = "There are too many edges in so long a text: shorten it."
TOO_LONG_FOR_CIRCUITS = (
    "So many passes of this model take too long: shorten the text, or choose a later layer."
)


class TooManyEdgesError(ValueError):
    """The text is too long for this measurement; the message is one sentence."""


@dataclass(frozen=True)
class Faithfulness:
    """The divergence after cutting `counts[i]` edges: `strongest` (n,), `random` (n, draws)."""

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
    cost = passes * (multiplications(base, part, layer) + PER_WEIGHT * heads * cells)
    if cost > MOST:
        raise TooManyEdgesError(TOO_LONG_FOR_CIRCUITS)
    return cost


def faithfulness(
    base: RecordedPass,
    part: str,
    layer: int,
    head: int | None,
    seed: int = 0,
    draws: int = DRAWS,
    report: Report = lambda done: None,
) -> Faithfulness:
    """The effect at one position of cutting more and more edges of a head (None: of the layer).

    Edges are the cells with any weight. About 10 × (1 + draws) passes that share the earlier
    layers, in batches of a bounded size; `report` gets the share that is done.
    TooManyEdgesError where `cutting_cost` raises it.
    """
    cutting_cost(base, part, layer, head, draws)
    at = site(part, layer)
    weights = base.trace.weights(at)[0] if head is None else base.trace.weights(at, head)
    flat = weights.flatten()
    edges = flat.nonzero()[:, 0]
    strongest = edges[flat[edges].argsort(descending=True, stable=True)]
    # The number of cut edges at each point: powers of two, and all.
    counts = tuple(sorted({*(count for count in COUNTS if count < len(edges)), len(edges)} - {0}))
    if not counts:
        return Faithfulness((), weights.new_zeros(0), weights.new_zeros(0, draws), 0)
    generator = torch.Generator().manual_seed(seed)
    random = [
        edges[torch.randperm(len(edges), generator=generator)[: COUNTS[-1]]] for _ in range(draws)
    ]
    cuts = [order[:count] for count in counts[:-1] for order in (strongest, *random)]
    cuts.append(strongest)  # cutting all edges is the same in every order
    heads = base.model.config.n_heads

    def edit_of(rows: range) -> Edit:
        cells = weights.new_ones(len(rows), heads, *weights.shape[-2:])
        of_head = cells if head is None else cells[:, head]
        for place, row in enumerate(rows):
            of_head[place].view(-1)[cuts[row]] = 0.0
        return KeepCells(f"{at}.weights", cells)

    widest = 2 * heads * weights.shape[-2] * weights.shape[-1]
    logits = run_branches(base, part, layer, len(cuts), edit_of, widest, report)
    before = logits_at(base.trace, base.position)
    divergences = divergence(base.model.config, before, logits)
    divergences = torch.cat([divergences, divergences[-1:].expand(draws)])
    curves = divergences.view(len(counts), 1 + draws)
    return Faithfulness(counts, curves[:, 0], curves[:, 1:], len(edges))
