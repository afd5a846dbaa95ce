"""Which cells of the layer × position grid interventions can change, by rule and without a pass."""

from collections.abc import Sequence

import torch
from torch import Tensor

from explorer.analysis.output_change import last_streams
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.edits import Intervention, ReplaceToken


def can_change(forward: ForwardPass, edits: Sequence[Intervention]) -> Tensor:
    """(layers, tokens): whether the residual stream after this layer can differ from the unedited.

    `forward` is the pass with the edits, of whose last stack the rows and columns are. A change
    goes on from layer to layer at its position, and to every query that may attend to it: in a
    causal model to the same and later positions, in a bidirectional one to all. A change of the
    encoder can reach every cell of the decoder. Cost grows with layers × tokens².
    """
    stack, layers = last_streams(forward.config)
    before = torch.zeros(len(forward.last_stack_tokens), dtype=torch.bool)
    rows = []
    for edit in edits:
        if edit.part.split(".")[0] != stack:
            before[:] = True
        elif isinstance(edit, ReplaceToken):
            before[edit.position] = True
    for layer in range(layers):
        may = forward.mask(f"{stack}.self_attn", layer)
        now = before | (may & before).any(-1)
        for edit in edits:
            if getattr(edit, "layer", layer) in (None, layer) and not isinstance(
                edit, ReplaceToken
            ):
                place = getattr(edit, "position", getattr(edit, "query", None))
                now[slice(None) if place is None else place] = True
        rows.append(now)
        before = now.clone()
    return torch.stack(rows)
