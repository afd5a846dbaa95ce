"""What every part and every edge carries of a difference, estimated by one backward pass.

Patching a value a with that of the corrupted text changes the metric m by about
(a_corrupted − a_clean) · ∂m/∂a. Given here is the part of m that is lost by it, so that what
raises the metric is positive. Edge attribution patching (EAP) does this for what one part
writes and another reads: the difference of the write, times the gradient by the input of the
reader. With `steps` above 1 the gradient is the mean over so many points on the way from the
corrupted embedding to the clean one (EAP-IG), since at the clean text alone it may be flat.
Shapes: w writers, r readers (`explorer.analysis.wiring`), t tokens, d width of the model.
Sources: Attribution Patching (Nanda 2023); Attribution Patching Outperforms Automated Circuit
Discovery (Syed et al. 2023), section 3; Have Faith in Faithfulness (Hanna et al. 2024), section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.contrast import Contrast
from explorer.analysis.wiring import Wiring, plain_wiring, wiring_of
from models import Transformer
from models.gradients import gradients
from models.interventions import Replace
from models.trace import trace

NUMBERS_HELD = 1 << 24
"""Of the values and gradients of all points on the way that are passed together: 64 MB."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """The score of every writer, (w,), and of every edge, (r, w), 0 where there is none.

    `clean` and `corrupted` are the metric of both texts. The edges of a writer add up to its own
    score: what it writes has no other way to the output.
    """

    writers: Tensor
    edges: Tensor | None
    clean: float
    corrupted: float


@dataclass(frozen=True, eq=False)
class Slopes:
    """What attribution is made of: differences of writes and gradients, by site, (h, t, …)."""

    differences: dict[str, Tensor]
    gradients: dict[str, Tensor]
    clean: float
    corrupted: float


def attribute(contrast: Contrast, steps: int = 1) -> Attribution:
    """The scores of every writer and edge of one pair.

    Costs the pass of the corrupted text, a forward and a backward pass for each step, and
    r × w × t × d multiplications. WiringError where a model has no edges; GradientError where a
    gradient is not finite.
    """
    wiring = wiring_of(contrast.config)
    found = slopes(contrast, wiring, [*wiring.writers, *wiring.readers], steps)
    written = writes(contrast.model, wiring, found.differences)
    edges = written.new_zeros(len(wiring.rows), len(wiring.columns))
    first = 0
    for site, places in wiring.readers.items():
        rows, count = slice(first, first + len(places)), wiring.written_before(places[0])
        by_reader = found.gradients[site].flatten(1)  # (h, t·d)
        edges[rows, :count] = by_reader @ written[:count].flatten(1).mT
        first = rows.stop
    return Attribution(_of_writers(wiring, found), edges, found.clean, found.corrupted)


def attribute_writers(contrast: Contrast, steps: int = 1) -> Attribution:
    """The scores of the writers alone, which every model of one stack has."""
    wiring = plain_wiring(contrast.config)
    found = slopes(contrast, wiring, list(wiring.writers), steps)
    return Attribution(_of_writers(wiring, found), None, found.clean, found.corrupted)


def positions_of_edges(
    contrast: Contrast, places: Sequence[tuple[int, int]], steps: int = 1
) -> Tensor:
    """How much of the scores of these edges (reader, writer) is due to each position, (n, t)."""
    wiring = wiring_of(contrast.config)
    found = slopes(contrast, wiring, [*wiring.writers, *wiring.readers], steps)
    written = writes(contrast.model, wiring, found.differences)
    read = torch.cat([found.gradients[site] for site in wiring.readers])
    rows, columns = (list(each) for each in zip(*places, strict=True)) if places else ([], [])
    return (read[rows] * written[columns]).sum(-1)


def _of_writers(wiring: Wiring, found: Slopes) -> Tensor:
    by_site = [
        (found.differences[site] * found.gradients[site]).sum((-1, -2)) for site in wiring.writers
    ]
    return torch.cat(by_site)


def slopes(contrast: Contrast, wiring: Wiring, sites: Sequence[str], steps: int = 1) -> Slopes:
    """Clean minus corrupted value of every writer, and the mean gradient at every one of `sites`.

    The mean is over the points k/`steps` of the way from the corrupted embedding to the clean
    one, k from 1; the last is the clean text.
    """
    corrupted = trace(
        contrast.model, contrast.corrupted, sites=list(wiring.writers), read_at=contrast.read_at
    )
    first = next(iter(wiring.writers))
    summed: dict[str, Tensor] = {}
    shares = (torch.arange(steps, dtype=torch.float64) + 1) / steps
    begin = corrupted[first]
    clean = begin if steps == 1 else _embedding(contrast, first)
    places = {**wiring.writers, **wiring.readers}
    of_one = sum(len(places[site]) for site in sites) * begin[0].numel()
    for some in shares.split(max(1, NUMBERS_HELD // of_one)):
        between = torch.lerp(begin, clean, some[:, None, None].to(begin))
        found = gradients(
            contrast.model,
            contrast.clean.expand(len(some), -1),
            of=lambda output: contrast.measured(output).sum(),
            sites=sites,
            edits=[] if steps == 1 else [Replace(first, between)],
            read_at=contrast.read_at,
        )
        for site, gradient in found.gradients.items():
            summed[site] = summed.get(site, 0) + gradient.sum(0) / steps
    return Slopes(
        {site: _by_head(found.values[site][-1] - corrupted[site][0]) for site in wiring.writers},
        {site: _by_head(gradient) for site, gradient in summed.items()},
        float(contrast.measured(found.output)[-1]),
        float(contrast.measured(corrupted.output)[0]),
    )


def _embedding(contrast: Contrast, site: str) -> Tensor:
    return trace(contrast.model, contrast.clean, sites=[site], read_at=contrast.read_at)[site]


def _by_head(value: Tensor) -> Tensor:
    """(h, t, …) as it is, and (t, d) as that of one part."""
    return value if value.dim() == 3 else value[None]


def writes(model: Transformer, wiring: Wiring, values: dict[str, Tensor]) -> Tensor:
    """What every writer adds to the residual stream, (w, t, d), without biases.

    `values` are those at the sites of the writers: of heads (h, t, width of a head).
    """
    stack: Any = getattr(model, wiring.stack)
    found = []
    for site, value in values.items():
        if site.endswith("head_out"):
            attention = stack.blocks[int(site.split(".")[1])].self_attn
            value = through_output(attention, value)
        found.append(value)
    return torch.cat(found, -3)


def through_output(attention: Any, heads: Tensor) -> Tensor:
    """The output projection of each head's own part, (…, h, t, w) to (…, h, t, d)."""
    weight = attention.o_proj.weight.detach().unflatten(1, (-1, attention.d_head))  # (d, h, w)
    return heads @ weight.permute(1, 2, 0)
