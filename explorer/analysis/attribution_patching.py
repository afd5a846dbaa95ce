"""Attribution patching: the effect of patching every part and edge, estimated by gradients.

Patching a value a with that of the corrupted text changes the metric m by about
(a_corrupted − a_clean) · ∂m/∂a. The scores here are the loss of m, so that a part that raises the
metric has a positive score. Edge attribution patching (EAP) does this for what one part writes
and another reads: the difference of the write, times the gradient with respect to the reader's
input. With `steps` above 1 the gradient is the mean over as many points between the corrupted
embedding and the clean one (EAP-IG), since it may vanish at the clean text alone.
Shapes: w writers, r readers (`explorer.analysis.wiring`), t tokens, d width of the model.
Sources: Attribution Patching (Nanda 2023); Attribution Patching Outperforms Automated Circuit
Discovery (Syed et al. 2023), section 3; Have Faith in Faithfulness (Hanna et al. 2024), section 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.wiring import Wiring, plain_wiring, wiring_of
from explorer.catalog.pass_budget import PassShape, pass_size, room_for
from models import Transformer
from models.frozen_scales import residual_without_scale
from models.gradients import Take, gradients
from models.interventions import Replace
from models.trace import trace

BYTES_HELD = 64_000_000
"""The most memory for the points of one batch."""


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
class Differences:
    """Clean minus corrupted value of every writer, (h, t, …), by site, and both metrics.

    It is 0 at a position of the clean text without a partner.
    `begin` and `end` are the embeddings of the corrupted and the clean text, (1, t, d).
    """

    by_site: dict[str, Tensor]
    begin: Tensor
    end: Tensor
    clean: float
    corrupted: float


def attribute(contrast: Contrast, steps: int = 1) -> Attribution:
    """The scores of every writer and edge of one pair.

    Costs a pass of both texts, a forward and a backward pass for each step, and r × w × t × d
    multiplications; memory holds the writes of all writers, (w, t, d), and one such pass.
    WiringError where a model has no edges; GradientError where a gradient is not finite.
    """
    wiring = wiring_of(contrast.config)
    with room_for(contrast.config, shape_of_points(contrast, steps)):
        differences = differences_of(contrast, wiring)
        write = writes(contrast.model, wiring, differences.by_site).flatten(1)  # (w, t·d)
        edges = write.new_zeros(len(wiring.rows), len(write))

        def take(site: str, gradient: Tensor) -> None:
            rows = wiring.rows_at[site]
            before = wiring.writers_before(wiring.rows[rows.start])
            edges[rows, :before] += gradient.flatten(1) @ write[:before].mT

        differences.by_site.clear()
        follow(contrast, differences, list(wiring.readers), steps, take)
    return Attribution(edges.sum(0), edges, differences.clean, differences.corrupted)


def attribute_writers(contrast: Contrast, steps: int = 1) -> Attribution:
    """The scores of the writers alone, which every model of one stack has."""
    wiring = plain_wiring(contrast.config)
    differences = differences_of(contrast, wiring)
    writers = differences.begin.new_zeros(len(wiring.columns))

    def take(site: str, gradient: Tensor) -> None:
        writers[wiring.columns_at[site]] += (differences.by_site[site] * gradient).sum((-1, -2))

    follow(contrast, differences, list(wiring.writers), steps, take)
    return Attribution(writers, None, differences.clean, differences.corrupted)


def positions_of_edges(
    contrast: Contrast, places: Sequence[tuple[int, int]], steps: int = 1
) -> Tensor:
    """The part of each position in the scores of these edges (reader, writer), (n, t)."""
    wiring = wiring_of(contrast.config)
    with room_for(contrast.config, shape_of_points(contrast, steps)):
        differences = differences_of(contrast, wiring)
        carried = differences.begin.new_zeros(len(places), contrast.clean.shape[1])

        def take(site: str, gradient: Tensor) -> None:
            rows = wiring.rows_at[site]
            for at, (reader, writer) in enumerate(places):
                if rows.start <= reader < rows.stop:
                    write = write_of(contrast.model, wiring, differences.by_site, writer)
                    carried[at] += (gradient[reader - rows.start] * write).sum(-1)

        follow(contrast, differences, list(wiring.readers), steps, take)
    return carried


def differences_of(contrast: Contrast, wiring: Wiring) -> Differences:
    """The differences between both texts. Costs a pass of both."""
    sites = list(wiring.writers)
    own = trace(contrast.model, contrast.clean, sites=sites, read_at=contrast.read_at)
    other = contrast.corrupted_trace(sites)
    clean, corrupted = (float(contrast.metric_of(passed.output)[0]) for passed in (own, other))
    by_site = {site: by_head((own[site] - other[site])[0]) for site in sites}
    return Differences(by_site, other[sites[0]], own[sites[0]], clean, corrupted)


def shape_of_points(contrast: Contrast, steps: int) -> PassShape:
    """The shape of a batch of points, with the writes of all writers."""
    layers = plain_wiring(contrast.config).layers
    one_point = PassShape(contrast.clean.shape[1], by_head=layers, leaves="graph")
    together = max(1, BYTES_HELD // pass_size(contrast.config, one_point).peak)
    return replace(one_point, texts=min(steps, together))


def follow(
    contrast: Contrast, differences: Differences, sites: Sequence[str], steps: int, take: Take
) -> None:
    """Hand the gradients at `sites`, (h, t, …), to `take`, from the output backwards.

    They add up to the mean over the points k/`steps` between the corrupted embedding and the
    clean one, k from 1; the last is the clean text.
    """
    first = next(iter(plain_wiring(contrast.config).writers))
    shares = (torch.arange(steps, dtype=torch.float64) + 1) / steps
    begin, end = differences.begin, differences.end
    for some in shares.split(shape_of_points(contrast, steps).texts):
        between = torch.lerp(begin, end, some[:, None, None].to(begin))
        gradients(
            contrast.model,
            contrast.clean.expand(len(some), -1),
            of=lambda output: contrast.metric_of(output).sum(),
            sites=sites,
            edits=[] if steps == 1 else [Replace(first, between)],
            read_at=contrast.read_at,
            take=lambda site, gradient: take(site, by_head(gradient.sum(0).div_(steps))),
        )


def by_head(value: Tensor) -> Tensor:
    """(h, t, …) as it is, and (t, d) as (1, t, d)."""
    return value if value.dim() == 3 else value[None]


def writes(model: Transformer, wiring: Wiring, values: dict[str, Tensor]) -> Tensor:
    """What every writer adds to the residual stream, (w, t, d), without biases.

    `values` are those at the sites of the writers, (h, t, …).
    """
    embedding = values[next(iter(wiring.writers))]
    write = embedding.new_empty(len(wiring.columns), *embedding.shape[1:])
    for site, columns in wiring.columns_at.items():
        write[columns] = writes_at(model, wiring, site, values[site])
    return write


def write_of(model: Transformer, wiring: Wiring, values: dict[str, Tensor], column: int) -> Tensor:
    """What this writer adds to the residual stream, (t, d)."""
    site = next(site for site, some in wiring.columns_at.items() if column < some.stop)
    head = wiring.columns[column].head
    return writes_at(model, wiring, site, values[site][head : head + 1], head)[0]


def writes_at(
    model: Transformer, wiring: Wiring, site: str, value: Tensor, first: int = 0
) -> Tensor:
    """What the writers of a site add to the residual stream, (…, h, t, d), from their values.

    `first` is the head of the first value.
    """
    _, layer, *name = site.split(".")
    block: Any = getattr(model, wiring.stack).blocks[int(layer)]
    if "self_attn" in name:
        heads, attention = slice(first, first + value.shape[-3]), block.self_attn
        weight = attention.o_proj.weight.detach().unflatten(1, (-1, attention.d_head))  # (d, h, w)
        value = value @ weight[:, heads].permute(1, 2, 0)
        return residual_without_scale(block.self_residual)[0](value)
    return residual_without_scale(block.mlp_residual)[0](value) if "mlp" in name else value
