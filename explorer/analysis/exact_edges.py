"""What single edges carry, exactly: each is patched alone, with what the corrupted text wrote.

All other edges carry the clean text, so such a pass parts from the clean one where the edge is
read, and many of them branch off one recorded pass (`explorer.analysis.ablation`).
Source: Localizing Model Behavior with Path Patching (Goldowsky-Dill et al. 2023), section 3.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

import torch
from torch import Tensor

from explorer.analysis.ablation import RecordedPass, run_branches
from explorer.analysis.attribution_patching import differences_of, write_of
from explorer.analysis.batch_edits import AddByRow
from explorer.analysis.contrast import Contrast
from explorer.analysis.patching import shared_tokens
from explorer.analysis.wiring import wiring_of
from models.trace import CHEAP_SITES, trace


def clean_pass(contrast: Contrast) -> RecordedPass:
    """The recorded pass of the clean text, from which patched ones branch off."""
    seen = trace(contrast.model, contrast.clean, sites=CHEAP_SITES, read_at=contrast.read_at)
    alike = shared_tokens(contrast.clean, contrast.corrupted)
    return RecordedPass(seen, [contrast.clean], contrast.place, from_position=alike)


def exact_edges(
    contrast: Contrast, edges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, float]]:
    """For each edge (reader, writer) its place in `edges`, and how much of the metric is lost.

    The edges into one layer's inputs come together; each costs the layers behind it, at the
    positions from where the texts differ. Beside the recorded pass it holds what the writers of
    those edges wrote.
    """
    wiring, base = wiring_of(contrast.config), clean_pass(contrast)
    part = f"{wiring.stack}.self_attn"
    start = base.start(part)
    found = differences_of(contrast, wiring).by_site
    differences = {site: value[:, start:] for site, value in found.items()}
    metric = float(contrast.measured(base.trace.output)[0])
    sites = [site for site, places in wiring.readers.items() for _ in places]
    order = sorted(range(len(edges)), key=lambda at: edges[at][0])
    for site, group in groupby(order, key=lambda at: sites[edges[at][0]]):
        places = list(group)
        wrote = [write_of(contrast.model, wiring, differences, edges[at][1]) for at in places]
        lost = -torch.stack(wrote)
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
