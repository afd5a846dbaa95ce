"""Each head, feed-forward layer, edge or the embedding ablated or patched alone, exactly.

Every number comes from a pass of its own, as a branch of a recorded one. A patched value is that
of another text's pass; an edge is patched where it is read. Where the two texts begin alike and no
query attends to later keys, `from_position` of the recorded pass is `shared_tokens`, and only the
tokens from there on are computed.
Sources: Investigating Gender Bias in Language Models Using Causal Mediation Analysis (Vig et al.
2020); Interpretability in the Wild (Wang et al. 2022), section 3; Localizing Model Behavior with
Path Patching (Goldowsky-Dill et al. 2023), section 3, for edges.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

import torch
from torch import Tensor

from explorer.analysis.attribution_patching import differences_of, write_of
from explorer.analysis.batch_edits import AblateHeads, AddByRow, PatchHeads
from explorer.analysis.batched_passes import (
    RecordedPass,
    run_branches,
    run_layers,
)
from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.wiring import wiring_of
from explorer.catalog.attention_parts import site as attention_site
from models.interventions import Edit, Replace
from models.stack import Stack
from models.trace import CHEAP_SITES, Trace, trace

PATCHED_SITES = ("*.head_out", "*.mlp.out", "*.0.resid_pre")
"""What the pass that is patched from must hold."""


def shared_tokens(clean: Tensor, corrupted: Tensor) -> int:
    """How many IDs two texts (…, t) of the same length begin with in common."""
    differ = (clean != corrupted).flatten(0, -2).any(0)
    return int(differ.int().argmax()) if differ.any() else len(differ)


def ablate_every_head(
    base: RecordedPass, part: str, layers: int, patched: Callable[[int], Tensor] | None = None
) -> Iterator[Tensor]:
    """For each layer the logits (heads, options); row i is of a pass without head i.

    `patched(layer)` gives other head outputs (heads, t, d_head) to put in place of zero.
    """
    start = base.start(part)

    def edit_of(layer: int, heads: range) -> Edit:
        at, which = f"{attention_site(part, layer)}.head_out", tuple(heads)
        if patched is None:
            return AblateHeads(at, which)
        return PatchHeads(at, which, patched(layer)[:, start:])

    return run_layers(base, part, range(layers), base.model.config.n_heads, edit_of)


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
