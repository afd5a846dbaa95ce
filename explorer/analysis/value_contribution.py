"""From one attention weight to the residual stream: what a key's value contributes to a query.

Shapes: w width of one head, d width of the model.
Sources: Attention Is All You Need, section 3.2.2 (heads, joined by W_O) and 3.1 (add and
norm).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.residual_writes import block_writes
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass


@dataclass(frozen=True, eq=False)
class KeyContribution:
    """What one key contributes to one query in one head, up to the residual stream.

    `value` (w) is the key's; `weight` times it is its contribution to `head_out` (w), the sum
    over all keys. The output projection makes of both what the head writes, for this key
    (`written_for_key`) and in all (`written`, d); with the `others` heads and the `bias` it is
    `out`, and `added` is what the residual stream `before` receives of it; `after` has the norms
    of the config. `difference` is the largest between the residual stream behind the block,
    recomputed, and that of the pass, relative to its largest number.
    """

    weight: float
    value: Tensor
    head_out: Tensor
    written_for_key: Tensor
    written: Tensor
    others: Tensor
    bias: Tensor
    out: Tensor
    added: Tensor
    before: Tensor
    after: Tensor
    where: str
    difference: float

    @property
    def given(self) -> Tensor:
        """weight × value, (w)."""
        return self.weight * self.value

    @property
    def together(self) -> Tensor:
        """The residual stream and what is added to it, (d)."""
        return self.before + self.added

    @property
    def largest(self) -> int:
        """The dimension of the residual stream that the head changes most."""
        return int(self.written.abs().argmax())


def key_contribution(
    forward: ForwardPass, part: str, layer: int, head: int, query: int, key: int
) -> KeyContribution:
    """The contribution of one key. Cost grows with keys × d + d² of one layer."""
    at, stack = site(part, layer), part.split(".")[0]
    block = block_writes(forward, stack, layer, torch.tensor([query]))
    attended = block.attended[part]
    values = forward.trace[f"{at}.v"][forward.row]
    group = forward.config.kv_head(head)
    bias = attended.attention.o_proj.bias
    with torch.no_grad():
        written = attended.through(head, attended.heads[head])[0]
        none = torch.zeros_like(written)
        constant = none if bias is None else bias.detach()
        weight, value = forward.weights(part, layer, head)[query, key], values[group, key]
        recorded = forward.trace[f"{stack}.{layer}.resid_post"][forward.row, query]
        return KeyContribution(
            weight=float(weight),
            value=value,
            head_out=attended.heads[head, 0],
            written_for_key=attended.through(head, weight * value),
            written=written,
            others=attended.out[0] - constant - written,
            bias=constant,
            out=attended.out[0],
            added=attended.frozen.written(attended.out)[0],
            before=attended.stream[0],
            after=attended.after[0],
            where=forward.config.norm_position,
            difference=float((block.after[0] - recorded).abs().max() / recorded.abs().max()),
        )
