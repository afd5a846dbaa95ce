"""Whether a map tells what matters: its strongest edges cut, beside as many random ones.

A cut edge carries nothing, and the rest of its row stays as it is. If the map is a
faithful account of the head, cutting its strongest edges changes the output more than
cutting random ones does. Source: Is Attention Interpretable? (Serrano and Smith 2019),
section 3; the random edges are their control.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.ablation import MOST, Given, multiplications, parted
from explorer.analysis.output_change import kl
from explorer.catalog.attention_parts import site
from models import Transformer
from models.interventions import Edit, KeepCells
from models.trace import Trace

DRAWS = 8
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
MOST_EDGES = 1 << 22
MOST_WEIGHTS = 1 << 24
"""Of all heads of the layer, which every pass holds, and a pattern as large beside them."""
A_WEIGHT = 500
"""Multiplications that take as long as one weight that is made, cut and read, not fused."""
TOO_MANY = "There are too many edges for so long a text: shorten it."
TOO_LONG = "So many passes of this model take too long: shorten the text, or choose a later layer."


class TooManyEdges(ValueError):
    """The text is too long for this; one sentence."""


@dataclass(frozen=True)
class Faithfulness:
    """KL in nats after cutting `counts[i]` edges: `strongest` (n,), `random` (n, draws)."""

    counts: tuple[int, ...]
    strongest: Tensor
    random: Tensor
    edges: int


def work(
    model: Transformer,
    passed: Trace,
    given: Given,
    part: str,
    layer: int,
    head: int | None,
    draws: int = DRAWS,
) -> int:
    """The most multiplications that it can take, before anything is made; TooManyEdges if not."""
    at, heads = site(part, layer), model.config.n_heads
    cells = passed[f"{at}.q"].shape[2] * passed[f"{at}.k"].shape[2]
    edges = cells * (heads if head is None else 1)
    if edges > MOST_EDGES or cells * heads > MOST_WEIGHTS:
        raise TooManyEdges(TOO_MANY)
    passes = sum(step < edges for step in STEPS) * (1 + draws) + 1
    found = passes * (multiplications(model, given, part, layer) + A_WEIGHT * heads * cells)
    if found > MOST:
        raise TooManyEdges(TOO_LONG)
    return found


def faithfulness(
    model: Transformer,
    passed: Trace,
    given: Given,
    part: str,
    layer: int,
    head: int | None,
    place: int,
    before: Tensor,
    seed: int = 0,
    draws: int = DRAWS,
    edits: Sequence[Edit] = (),
    report: Callable[[float], None] = lambda done: None,
) -> Faithfulness:
    """What cutting more and more edges of a head (None: of the layer) does at one position.

    `before` are the logits of the recorded pass, in which these `edits` were made. Edges are
    the cells with any weight. All passes share what lies before the layer; about
    10 × (1 + draws) of them, each from the layer on, in batches of a bounded size; `report`
    is told the share that is done. TooManyEdges where `work` finds too much.
    """
    work(model, passed, given, part, layer, head, draws)
    at = site(part, layer)
    weights = passed.weights(at)[0] if head is None else passed.weights(at, head)
    flat = weights.flatten()
    there = flat.nonzero()[:, 0]
    order = there[flat[there].argsort(descending=True, stable=True)]
    counts = tuple(sorted({*(n for n in STEPS if n < len(order)), len(order)} - {0}))
    if not counts:
        return Faithfulness((), weights.new_zeros(0), weights.new_zeros(0, draws), 0)
    generator = torch.Generator().manual_seed(seed)
    some = [torch.randperm(len(there), generator=generator)[: STEPS[-1]] for _ in range(draws)]
    drawn = [there[each] for each in some]
    cuts = [ranked[:count] for count in counts[:-1] for ranked in (order, *drawn)]
    cuts.append(order)  # all are all, in whichever order

    def edit_of(rows: range) -> Edit:
        return KeepCells(f"{at}.weights", _left([cuts[row] for row in rows], weights, head, model))

    widest = 2 * model.config.n_heads * weights.shape[-2] * weights.shape[-1]
    logits = parted(
        model, passed, given, part, layer, place, len(cuts), edit_of, widest, edits, report
    )
    seen = kl(before, logits)
    found = torch.cat([seen, seen[-1:].expand(draws)]).view(len(counts), 1 + draws)
    return Faithfulness(counts, found[:, 0], found[:, 1:], len(order))


def _left(cuts: Sequence[Tensor], weights: Tensor, head: int | None, model: Transformer) -> Tensor:
    """One where an edge is left, zero where it is cut, (rows, heads, queries, keys)."""
    heads = model.config.n_heads
    left = weights.new_ones(len(cuts), heads, *weights.shape[-2:])
    whose = left if head is None else left[:, head]
    for row, cut in enumerate(cuts):
        whose[row].view(-1)[cut] = 0.0
    return left
