"""What something written into the residual stream at one position adds to the logits there.

The whole vocabulary at once, past no later block: the norms between, the soft cap and the extra
layer of a masked language model are frozen at their values in this pass, as in
`explorer.analysis.logit_attribution`, which takes one logit back to all parts.
Shapes: n written vectors, d width of the model, w width of one head.
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.analysis.frozen_norms import before_activation, through_norm
from explorer.analysis.head_weights import output_columns
from explorer.analysis.output_change import last_streams
from explorer.analysis.residual_writes import block_writes
from explorer.inference.forward_pass import ForwardPass
from models.output_heads import LanguageModelHead


def direct_logits(
    forward: ForwardPass,
    layer: int,
    place: int,
    written: Tensor,
    options: Tensor | None = None,
) -> Tensor:
    """(n, options): of what attention in this layer writes at a place, (n, d), to these tokens.

    For models of one stack with a head over tokens. Costs n × options × d; without `options`
    all tokens are meant.
    """
    model = forward.trace.model
    stack, count = last_streams(forward.config)
    with torch.no_grad():
        if forward.config.norm_position != "pre":
            written = _through_blocks(forward, layer, place, written)
        last = forward.trace[f"{stack}.{count - 1}.resid_post"][forward.row, [place]]
        normed, head = model.last_stack.norm(last), model.head
        assert isinstance(head, LanguageModelHead)
        written = through_norm(model.last_stack.norm, last, written)
        if not isinstance(head.transform, torch.nn.Identity):
            transform = head.transform
            projected = transform.proj(normed)
            written = before_activation(
                transform.activation, projected, written @ transform.proj.weight.mT
            )
            written = through_norm(transform.norm, transform.activation(projected), written)
            normed = head.transform(normed[None])[0]
        words: Tensor = model.last_stack.embedding.weight if head.weight is None else head.weight
        bias: Tensor | None = head.bias
        if options is not None:
            words, bias = words[options], None if bias is None else bias[options]
        found = written @ words.mT * head.scale
        if head.cap is not None:
            logits = normed @ words.mT * head.scale + (0 if bias is None else bias)
            found = found * (head.cap * (logits / head.cap).tanh() / logits).nan_to_num(nan=1.0)
    return found


def source_writes(forward: ForwardPass, layer: int, head: int) -> Tensor:
    """(keys, d): what the head would write if its whole weight were on one token of the text.

    From the recorded values, so the norm and the positions in front are those of the pass; with
    the bias of the values, without that of the output projection.
    """
    stack, _ = last_streams(forward.config)
    values = forward.trace[f"{stack}.{layer}.self_attn.v"][forward.row]
    columns = output_columns(forward.trace.model, layer, head)
    return values[forward.config.kv_head(head)] @ columns.mT


def _through_blocks(forward: ForwardPass, layer: int, place: int, written: Tensor) -> Tensor:
    """Through the norms behind the sub-layers, this one's first, to behind the last block."""
    stack, count = last_streams(forward.config)
    for n in range(layer, count):
        block = block_writes(forward, stack, n, torch.tensor([place]))
        parts = [*block.attended.values(), *([block.mlp] if block.mlp else [])]
        if n == layer:
            written = through_norm(parts[0].residual.output_norm, parts[0].out, written)
        for part in parts:
            total = part.stream + part.residual.output_norm(part.out)
            written = through_norm(part.residual.sum_norm, total, written)
    return written
