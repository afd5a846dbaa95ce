"""The logit lens: what the model's own head reads off the stream after every layer.

Source: interpreting GPT: the logit lens (nostalgebraist 2020).
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.analysis.output_change import has_words, last_streams
from explorer.inference.forward_pass import ForwardPass


def streams(forward: ForwardPass) -> list[Tensor]:
    """The stream that enters the first layer, and that after every layer, each (1, tokens, d)."""
    stack, layers = last_streams(forward.config)
    row = slice(forward.row, forward.row + 1)
    names = [f"{stack}.0.resid_pre", *(f"{stack}.{n}.resid_post" for n in range(layers))]
    return [forward.trace[name][row] for name in names]


def lens(forward: ForwardPass, place: int) -> Tensor:
    """Logits of every stream, (layers + 1, options), by the model's last norm and head.

    At one position, or of the whole text where the model decides on a class. The last row
    is what the model answers. Cost grows with layers × d_model × vocabulary.
    """
    model, words = forward.trace.model, has_words(forward.config)
    at = slice(place, place + 1)
    found = []
    with torch.no_grad():
        for stream in streams(forward):
            normed = model.last_stack.norm(stream)
            found.append(model.read(normed[:, at])[0, 0] if words else model.read(normed)[0])
    return torch.stack(found)


def ranks(logits: Tensor, option: int) -> list[int]:
    """Which place this option has after every layer; 1 is the likeliest."""
    return ((logits > logits[:, option : option + 1]).sum(-1) + 1).tolist()
