"""What single edges carry, exactly: each is patched alone, with what the corrupted text wrote.

All other edges carry the clean text, so such a pass parts from the clean one where the edge is
read, and many of them branch off one recorded pass (`explorer.analysis.ablation`).
Source: Localizing Model Behavior with Path Patching (Goldowsky-Dill et al. 2023), section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

import torch
from torch import Tensor

from explorer.analysis.ablation import RecordedPass, run_branches
from explorer.analysis.attribution_patching import writes
from explorer.analysis.contrast import Contrast
from explorer.analysis.patching import shared_tokens
from explorer.analysis.wiring import Wiring, wiring_of
from explorer.catalog.pass_budget import passing
from explorer.catalog.pass_size import PassShape
from models.interventions import AddByRow
from models.trace import CHEAP_SITES, trace


def clean_pass(contrast: Contrast) -> RecordedPass:
    """The recorded pass of the clean text, from which patched ones branch off."""
    seen = trace(contrast.model, contrast.clean, sites=CHEAP_SITES, read_at=contrast.read_at)
    alike = shared_tokens(contrast.clean, contrast.corrupted)
    return RecordedPass(seen, [contrast.clean], contrast.place, from_position=alike)


def differences_of(contrast: Contrast, wiring: Wiring) -> Tensor:
    """What every writer wrote, clean minus corrupted, (w, t, d). A pass of both texts."""
    texts = torch.cat([contrast.clean, contrast.corrupted])
    shape = PassShape(texts.shape[1], texts=2, by_head=wiring.layers)
    with passing(contrast.config, shape):
        sites = list(wiring.writers)
        seen = trace(contrast.model, texts, sites=sites, read_at=contrast.read_at)
        both = {
            site: value if (value := seen[site]).dim() == 4 else value[:, None] for site in sites
        }
        clean, corrupted = writes(contrast.model, wiring, both)
        return clean - corrupted


def exact_edges(
    contrast: Contrast, edges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, float]]:
    """For each edge (reader, writer) its place in `edges`, and how much of the metric is lost.

    The edges into one layer's inputs come together; each costs the layers behind it, at the
    positions from where the texts differ.
    """
    wiring, base = wiring_of(contrast.config), clean_pass(contrast)
    part = f"{wiring.stack}.self_attn"
    differences = differences_of(contrast, wiring)[:, base.start(part) :]
    metric = float(contrast.measured(base.trace.output)[0])
    sites = [site for site, places in wiring.readers.items() for _ in places]
    order = sorted(range(len(edges)), key=lambda at: edges[at][0])
    for site, group in groupby(order, key=lambda at: sites[edges[at][0]]):
        places = list(group)
        lost = -differences[[edges[at][1] for at in places]]
        heads = [wiring.rows[edges[at][0]].head for at in places]
        edit_of = partial(_added, site, lost, heads if "self_attn" in site else None)
        widest = 3 * contrast.config.n_heads * lost[0].numel()
        layer = int(site.split(".")[1])
        logits = run_branches(base, part, layer, len(places), edit_of, widest)
        for at, left in zip(places, contrast.outcome(logits).tolist(), strict=True):
            yield at, metric - left


def _added(site: str, values: Tensor, heads: list[int] | None, rows: range) -> AddByRow:
    some = slice(rows.start, rows.stop)
    return AddByRow(site, values[some], None if heads is None else tuple(heads[some]))
