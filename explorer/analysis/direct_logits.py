"""What something written into the residual stream at one position adds to the logits there.

The whole vocabulary at once, past no later block: the norms between, the soft cap and the extra
layer of a masked language model are frozen at their values in this pass, as in
`explorer.analysis.logit_attribution`, which takes one logit back to all parts.
Shapes: n written vectors, d width of the model, w width of one head.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.head_weights import output_columns
from explorer.analysis.output_change import last_streams
from explorer.analysis.residual_writes import block_writes
from explorer.inference.forward_pass import ForwardPass
from models.frozen import Frozen, freeze_norm, freeze_words, is_plain_sum
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
        for frozen in _later(forward, layer, place):
            written = frozen.linear(written)
        last = forward.trace[f"{stack}.{count - 1}.resid_post"][forward.row, [place]]
        norm, head = model.last_stack.norm, model.head
        assert isinstance(head, LanguageModelHead)
        words: Tensor = model.last_stack.embedding.weight
        logits = freeze_norm(norm, last).then(freeze_words(head, norm(last), words, options))
        return logits.linear(written)


def source_writes(forward: ForwardPass, layer: int, head: int) -> Tensor:
    """(keys, d): what the head would write if its whole weight were on one token of the text.

    From the recorded values, so the norm and the positions in front are those of the pass; with
    the bias of the values, without that of the output projection.
    """
    stack, _ = last_streams(forward.config)
    values = forward.trace[f"{stack}.{layer}.self_attn.v"][forward.row]
    columns = output_columns(forward.trace.model, layer, head)
    return values[forward.config.kv_head(head)] @ columns.mT


def _later(forward: ForwardPass, layer: int, place: int) -> Iterator[Frozen]:
    """Everything behind attention in this layer, up to the last block, that changes what it wrote.

    What stays as it is in a plain sum passes nothing.
    """
    model: Any = forward.trace.model
    stack, blocks = last_streams(forward.config)[0], model.last_stack.blocks
    if all(is_plain_sum(blocks[n].self_residual) for n in range(layer, len(blocks))):
        return
    for n in range(layer, len(blocks)):
        block = block_writes(forward, stack, n, torch.tensor([place]))
        for at, part in enumerate([*block.attended.values(), *([block.mlp] if block.mlp else [])]):
            if (n, at) == (layer, 0):
                yield part.frozen.written
            yield part.frozen.summed
