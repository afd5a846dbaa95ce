"""From one weight on to the stream: what a key's value gives a query, number by number.

Shapes: w width of one head, d width of the model.
Sources: Attention Is All You Need, section 3.2.2 (heads, joined by W_O) and 3.1 (add and
norm).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.residual_writes import block_at
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass


@dataclass(frozen=True, eq=False)
class Onward:
    """What one key gives one query in one head, and what becomes of it.

    `value` (w) is the key's; `weight` times it is what the key gives; all keys together are
    `head_out` (w). W_O makes of both what the head writes, for this key (`written_for_key`)
    and in all (`written`, d); with the other heads (`others`) and the `bias` it is `out`.
    The stream is `before` and `after`, which is normed where the norm stands behind the sum.
    `difference` is the largest between the stream behind the whole block, made again, and
    that of the pass, by its largest number.
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
        """The stream and what is added to it, (d)."""
        return self.before + self.added

    @property
    def largest(self) -> int:
        """The number of the stream that the head changes most."""
        return int(self.written.abs().argmax())


def onward(forward: ForwardPass, part: str, layer: int, head: int, query: int, key: int) -> Onward:
    """The way of one weight into the stream. Cost grows with keys × d + d² of one layer."""
    at, stack = site(part, layer), part.split(".")[0]
    block = block_at(forward, stack, layer, torch.tensor([query]))
    attended = block.attended[part]
    values = forward.trace[f"{at}.v"][forward.row]
    group = head // (forward.config.n_heads // len(values))
    bias = attended.attention.o_proj.bias
    with torch.no_grad():
        written = attended.through(head, attended.heads[head])[0]
        none = torch.zeros_like(written)
        constant = none if bias is None else bias.detach()
        weight, value = forward.weights(part, layer, head)[query, key], values[group, key]
        recorded = forward.trace[f"{stack}.{layer}.resid_post"][forward.row, query]
        return Onward(
            weight=float(weight),
            value=value,
            head_out=attended.heads[head, 0],
            written_for_key=attended.through(head, weight * value),
            written=written,
            others=attended.out[0] - constant - written,
            bias=constant,
            out=attended.out[0],
            added=attended.residual.output_norm(attended.out)[0],
            before=attended.stream[0],
            after=attended.after[0],
            where=forward.config.norm_position,
            difference=float((block.after[0] - recorded).abs().max() / recorded.abs().max()),
        )
