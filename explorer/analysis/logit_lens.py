"""The logit lens: the output head reads the residual stream after every layer.

Source: interpreting GPT: the logit lens (nostalgebraist 2020).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from explorer.analysis.output_change import has_words, last_streams
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.edits import Intervention, ReplaceToken
from explorer.system.cooperative import interruptible
from models.trace import Trace


def residual_streams(passed: Trace) -> list[Tensor]:
    """The residual stream before the first layer and after every layer, each (1, tokens, d)."""
    stack, layers = last_streams(passed.model.config)
    names = [f"{stack}.0.resid_pre", *(f"{stack}.{n}.resid_post" for n in range(layers))]
    return [passed[name][:1] for name in names]


def lens_logits(passed: Trace, position: int) -> Tensor:
    """Logits of every residual stream, (layers + 1, options), by the model's last norm and head.

    They are those of one position, or of the whole text where the model predicts a class. The
    last row is the model's own output. Cost grows with layers × d_model × vocabulary.
    """
    model, words = passed.model, has_words(passed.model.config)
    at = slice(position, position + 1)
    rows = []
    with torch.no_grad():
        for stream in interruptible(residual_streams(passed)):
            normed = model.last_stack.norm(stream)
            rows.append(model.read(normed[:, at])[0, 0] if words else model.read(normed)[0])
    return torch.stack(rows)


def ranks_by_layer(logits: Tensor, option: int) -> list[int]:
    """The rank of this option in every row; 1 is the likeliest."""
    return ((logits > logits[:, option : option + 1]).sum(-1) + 1).tolist()


def likeliest_by_position(passed: Trace, stream: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The likeliest options at every position of a residual stream (1, tokens, d).

    Returns their probabilities and their IDs, each (tokens, most). Cost grows with tokens ×
    d_model × vocabulary.
    """
    model = passed.model
    with torch.no_grad():
        logits = model.read(model.last_stack.norm(stream))[0]
        top = logits.topk(min(most, logits.shape[-1]))
        return (top.values - logits.logsumexp(-1, keepdim=True)).exp(), top.indices


def can_change(forward: ForwardPass, edits: Sequence[Intervention]) -> Tensor:
    """(layers, tokens): whether edits can change the residual stream after a layer, by rule.

    `forward` is the pass with the edits. A change stays at its position, and each layer brings it
    to every query that may attend to it: to later positions, in a bidirectional model to all. One
    in the encoder can reach the whole decoder. Cost grows with layers × tokens².
    """
    stack, layers = last_streams(forward.config)
    now, rows = torch.zeros(len(forward.last_stack_tokens), dtype=torch.bool), []
    for layer in range(-1, layers):  # -1 is the embedding
        if layer >= 0:
            now = now | (forward.mask(f"{stack}.self_attn", layer) & now).any(-1)
        for edit in edits:
            at = -1 if isinstance(edit, ReplaceToken) else getattr(edit, "layer", None)
            if edit.part.split(".")[0] != stack:
                now[:] = True
            elif at == layer or (at is None and layer >= 0):
                place = getattr(edit, "position", getattr(edit, "query", None))
                now[slice(None) if place is None else place] = True
        rows.append(now)
    return torch.stack(rows[1:])
