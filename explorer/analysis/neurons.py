"""The neurons of a feed-forward layer: how much each writes, what it promotes, which lines fire it.

A neuron is one number of the hidden layer, the site `….mlp.hidden`. At a token it writes its
activation times its row of the down projection into the residual stream.
Shapes: n neurons, d width of the model, l lines, b lines of a batch, t tokens.
Sources: Transformer Feed-Forward Layers Are Key-Value Memories (Geva et al. 2021), section 2;
Transformer Feed-Forward Layers Build Predictions by Promoting Concepts in the Vocabulary Space
(Geva et al. 2022), section 3.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.circuits.top_lines import TokenizedLines, batches, padded_lines
from explorer.analysis.logit_attribution import direct_logits
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import record
from models import Transformer
from models.frozen_scales import residual_without_scale


def neuron_strengths(model: Transformer, stack: str, layer: int, activations: Tensor) -> Tensor:
    """|activation| × norm of the row that it writes, (…, n), of activations (…, n).

    A norm of the layer's output has its gain in the row; its scale, equal for all, is left out.
    """
    block: Any = getattr(model, stack).blocks[layer]
    write = residual_without_scale(block.mlp_residual)[0]
    with torch.no_grad():
        return activations.abs() * write(block.mlp.down_proj.weight.mT).norm(dim=-1)


def promoted_logits(
    forward: ForwardPass, layer: int, place: int, neurons: Tensor, activations: Tensor
) -> Tensor:
    """The direct logits of what these neurons (k,) of the last stack write, (k, vocabulary).

    The norms behind it are frozen at this token. Costs k × vocabulary × d.
    """
    block: Any = forward.trace.model.last_stack.blocks[layer]
    rows = block.mlp.down_proj.weight.detach().mT[neurons]
    return direct_logits(forward, layer, place, activations[neurons, None] * rows, by_mlp=True)


def line_activations(
    opened: OpenModel, text: TokenizedLines, layer: int, report: Callable[[float], None]
) -> tuple[Tensor, Tensor]:
    """The largest positive and negative activation of every neuron in a line, and their tokens.

    Both are (2, l, n), sizes without a sign, of a model of one stack. The first token and special
    tokens do not count. Costs a pass over all tokens.
    """
    config, rows, done = opened.config, text.rows, 0
    site = f"{config.stacks[0]}.{layer}.mlp.hidden"
    values = torch.zeros(2, len(rows), config.d_ff)
    places = torch.zeros(values.shape, dtype=torch.int16)
    equal = config.pad_id is None and config.kind == "encoder"
    for some in batches(rows, config.n_heads, equal_lengths=equal):
        padded, counts = padded_lines(opened, [rows[at] for at in some])
        hidden = record(opened, padded, sites=[site], read_at=slice(0))[site]
        hidden = hidden.float() * counts[..., None]
        largest = torch.stack([hidden, -hidden]).max(2)
        values[:, some], places[:, some] = largest.values, largest.indices.to(torch.int16)
        report((done := done + len(some)) / len(rows))
    return values, places
