"""Each head, feed-forward layer, edge or the embedding ablated or patched alone, exactly.

Every number comes from its own pass, which branches off a recorded one. A patched value is that of
another text's pass; an edge is patched where it is read. In a causal stack, two texts that begin
alike share the passes of their first `shared_tokens` tokens, which are not computed again.
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
from explorer.analysis.batched_passes import RecordedPass, run_branches, run_layers
from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.wiring import plain_wiring, wiring_of
from explorer.catalog.attention_parts import site as attention_site
from models.interventions import Edit, Replace
from models.trace import CHEAP_SITES, Trace, trace


def shared_tokens(clean: Tensor, corrupted: Tensor) -> int:
    """The number of IDs that two texts (…, t) of one length have in common at their start."""
    differ = (clean != corrupted).flatten(0, -2).any(0)
    return int(differ.int().argmax()) if differ.any() else len(differ)


def ablate_every_head(
    base: RecordedPass, part: str, layers: int, patched: Callable[[int], Tensor] | None = None
) -> Iterator[Tensor]:
    """For each layer the logits (heads, options); row i is of a pass without head i.

    `patched(layer)` gives head outputs (heads, t, d_head) that replace zero.
    """
    start = base.start(part)

    def edit_of(layer: int, heads: range) -> Edit:
        at, which = f"{attention_site(part, layer)}.head_out", tuple(heads)
        if patched is None:
            return AblateHeads(at, which)
        return PatchHeads(at, which, patched(layer)[:, start:])

    return run_layers(base, part, range(layers), base.model.config.n_heads, edit_of)


def patch_every_head(base: RecordedPass, source: Trace, part: str, layers: int) -> Iterator[Tensor]:
    """For each layer the logits (heads, options); row i has the output of head i in `source`."""
    sites = [f"{attention_site(part, layer)}.head_out" for layer in range(layers)]
    return ablate_every_head(base, part, layers, lambda layer: source[sites[layer]][0])


def patch_layers(
    base: RecordedPass, source: Trace, part: str, layers: Sequence[int], name: str
) -> Iterator[Tensor]:
    """For each of these layers the logits (1, options) with its value of this name from `source`.

    The name is, for example, `mlp.out`, or `resid_pre` of layer 0 for the embedding.
    """
    stack = part.split(".")[0]

    def edit_of(layer: int, rows: range) -> Edit:
        site = f"{stack}.{layer}.{name}"
        return Replace(site, source[site][:, base.start(part) :])

    return run_layers(base, part, layers, 1, edit_of)


def tokens_alike(contrast: Contrast) -> int:
    """The number of equal tokens at the start of both texts, which are partners."""
    clean, corrupted = contrast.clean, contrast.corrupted
    length = min(clean.shape[1], corrupted.shape[1])
    alike = shared_tokens(clean[:, :length], corrupted[:, :length])
    return min(alike, contrast.place, contrast.corrupted_place) if contrast.partners else alike


def record_text(contrast: Contrast) -> RecordedPass:
    """The recorded pass of the clean text, from which patched ones branch off."""
    text = contrast.clean
    passed = trace(contrast.model, text, sites=CHEAP_SITES, read_at=contrast.read_at)
    return RecordedPass(passed, [text], contrast.place, from_position=tokens_alike(contrast))


def exact_writers(contrast: Contrast) -> Iterator[tuple[Sequence[int], Tensor]]:
    """The columns of some writers, and the loss of the metric when each of them is patched.

    First the heads of each layer, then the feed-forward layers, then the embedding.
    """
    wiring, base = plain_wiring(contrast.config), record_text(contrast)
    metric = contrast.metric_of(base.trace.output)[0]
    sites, part = list(wiring.writers), f"{wiring.stack}.self_attn"
    corrupted = contrast.corrupted_trace(sites)
    layers = range(wiring.layers)
    branches = {
        "self_attn.head_out": patch_every_head(base, corrupted, part, wiring.layers),
        "mlp.out": patch_layers(base, corrupted, part, layers if wiring.has_mlp else (), "mlp.out"),
        "resid_pre": patch_layers(base, corrupted, part, (0,), "resid_pre"),
    }
    for name, all_logits in branches.items():
        for layer, logits in enumerate(all_logits):
            columns = wiring.columns_at[f"{wiring.stack}.{layer}.{name}"]
            yield range(columns.start, columns.stop), metric - contrast.outcome(logits)


def exact_edges(
    contrast: Contrast, edges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, float]]:
    """For each edge (reader, writer) its place in `edges`, and the loss of the metric.

    The edges into one layer's inputs come together; each costs the later layers, at the positions
    from where the texts differ. Memory holds the recorded pass and the writes of those edges.
    """
    wiring, base = wiring_of(contrast.config), record_text(contrast)
    part = f"{wiring.stack}.self_attn"
    start = base.start(part)
    by_site = differences_of(contrast, wiring).by_site
    differences = {site: value[:, start:] for site, value in by_site.items()}
    metric = float(contrast.metric_of(base.trace.output)[0])
    sites = [site for site, places in wiring.readers.items() for _ in places]
    order = sorted(range(len(edges)), key=lambda at: edges[at][0])
    for site, group in groupby(order, key=lambda at: sites[edges[at][0]]):
        places = list(group)
        writes = [write_of(contrast.model, wiring, differences, edges[at][1]) for at in places]
        change = -torch.stack(writes)
        heads = [wiring.rows[edges[at][0]].head for at in places]
        edit_of = partial(_addition, site, change, heads if "self_attn" in site else None)
        widest = 3 * contrast.config.n_heads * change[0].numel()
        layer = int(site.split(".")[1])
        logits = run_branches(base, part, layer, len(places), edit_of, widest)
        for at, left in zip(places, contrast.outcome(logits).tolist(), strict=True):
            yield at, metric - left


def _addition(site: str, values: Tensor, heads: list[int] | None, rows: range) -> AddByRow:
    some = slice(rows.start, rows.stop)
    return AddByRow(site, values[some], None if heads is None else tuple(heads[some]))
