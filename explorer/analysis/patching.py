"""Values of another text's pass put into a recorded one: each head, feed-forward, the embedding.

Exact activation patching: every number comes from a pass of its own, as a branch of the recorded
one. Where the two texts begin alike and no query attends to later keys, `from_position` of the
recorded pass is `shared_tokens`, and only the tokens from there on are computed. Source:
Investigating Gender Bias in Language Models Using Causal Mediation Analysis (Vig et al. 2020);
Interpretability in the Wild (Wang et al. 2022), section 3.
"""

from collections.abc import Iterator

from torch import Tensor

from explorer.analysis.ablation import RecordedPass, ablate_every_head, run_branches, run_layers
from models.interventions import Edit, Replace
from models.stack import Stack
from models.trace import Trace

PATCHED_SITES = ("*.head_out", "*.mlp.out", "*.0.resid_pre")
"""What the pass that is patched from must hold."""


def shared_tokens(clean: Tensor, corrupted: Tensor) -> int:
    """How many IDs two texts (…, t) of the same length begin with in common."""
    differ = (clean != corrupted).flatten(0, -2).any(0)
    return int(differ.int().argmax()) if differ.any() else len(differ)


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
