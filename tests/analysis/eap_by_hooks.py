"""Edge attribution patching in plain torch, with hooks on the reference library's Llama.

Nothing of ours is used. What the heads read is taken from the attention function, which the
library lets one replace, and led back to the residual stream by hand: through rotation, projection
and norm. Rows are the q, the k and the v inputs of all heads and then the feed-forward layer, layer
by layer, at last the logits; columns the embedding, and all heads and the feed-forward layer, layer
by layer.
Source: Attribution Patching Outperforms Automated Circuit Discovery (Syed et al. 2023), section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

NAME = "recorded"


@dataclass(frozen=True)
class Layer:
    """The parts of one block; weights are (out, d) of q, k and v, and (d, h·w) of the output."""

    attn_norm: Any
    mlp_norm: Any
    mlp: Any
    inputs: Sequence[Tensor]
    output: Tensor


def layers_of(model: Any) -> list[Layer]:
    return [
        Layer(
            *(block.input_layernorm, block.post_attention_layernorm, block.mlp),
            [getattr(block.self_attn, f"{name}_proj").weight for name in "qkv"],
            block.self_attn.o_proj.weight,
        )
        for block in model.model.layers
    ]


def published_scores(
    model: Any, clean: Tensor, corrupted: Tensor, answers: tuple[int, int], steps: int = 1
) -> Tensor:
    """(Clean − corrupted write) · gradient by the input, for every reader and writer, (r, w).

    With more steps the gradient is the mean over the embedding's way from corrupted to clean.
    """
    begin, end = (HookedPass(model, text, answers) for text in (corrupted, clean))
    read: Any = 0
    for step in range(1, steps):
        point = torch.lerp(begin.embedding, end.embedding, step / steps)
        read = read + HookedPass(model, clean, answers, point).gradients()
    read = (read + end.gradients()) / steps
    scores = read.flatten(1) @ (end.writes() - begin.writes()).flatten(1).mT
    return scores.where(is_edge(len(end.layers), end.heads), 0)


def is_edge(layers: int, heads: int) -> Tensor:
    """Which writers come before which reader, (r, w)."""
    before: list[int] = []
    for layer in range(layers):
        first = 1 + layer * (heads + 1)
        before += [first] * 3 * heads + [first + heads]
    before.append(1 + layers * (heads + 1))
    return torch.arange(before[-1]) < torch.tensor(before)[:, None]


class HookedPass:
    """One pass with its graph, and what its hooks have seen."""

    def __init__(
        self, model: Any, text: Tensor, answers: tuple[int, int], embedding: Tensor | None = None
    ) -> None:
        self.model, self.layers = model, layers_of(model)
        self.heads = model.config.num_attention_heads
        self.inputs: list[tuple[Tensor, Tensor, Tensor]] = []
        """The queries, keys and values of each head (h, t, w), after rotation, layer by layer."""
        self.outputs: list[Tensor] = []
        self.streams: list[Tensor] = []
        """What the norm before attention reads in each layer, (t, d)."""
        self.middles: list[Tensor] = []
        self.mlp_inputs: list[Tensor] = []
        self.mlp_outputs: list[Tensor] = []
        hooks = [
            model.model.layers[0].register_forward_pre_hook(
                lambda _, given: self._begin(given, embedding)
            ),
            model.model.norm.register_forward_pre_hook(self._end),
        ]
        for layer in self.layers:
            hooks += [
                layer.attn_norm.register_forward_pre_hook(
                    lambda _, given: self.streams.append(given[0])
                ),
                layer.mlp_norm.register_forward_pre_hook(
                    lambda _, given: self.middles.append(given[0])
                ),
                layer.mlp.register_forward_hook(self._mlp),
            ]
        AttentionInterface.register(NAME, self._attention)
        model.set_attn_implementation(NAME)
        with torch.enable_grad():
            logits = model(input_ids=text, use_cache=False).logits[0, -1]
        self.value = logits[answers[0]] - logits[answers[1]]
        for hook in hooks:
            hook.remove()

    def _begin(self, given: Any, embedding: Tensor | None) -> Any:
        self.embedding = (given[0] if embedding is None else embedding).detach().requires_grad_()
        return (self.embedding, *given[1:])

    def _end(self, _: Any, given: Any) -> None:
        self.last = given[0]

    def _mlp(self, _: Any, given: Any, made: Tensor) -> None:
        self.mlp_inputs.append(given[0])
        self.mlp_outputs.append(made)

    def _attention(
        self, module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, scaling: float, **_: Any
    ) -> tuple[Tensor, None]:
        k, v = (each.repeat_interleave(self.heads // each.shape[1], 1) for each in (k, v))
        self.inputs.append((q, k, v))
        scores = q @ k.mT * scaling
        later = torch.ones(scores.shape[-2:]).triu(1).bool()
        made = scores.masked_fill(later, -torch.inf).softmax(-1) @ v
        self.outputs.append(made)
        return made.transpose(1, 2), None

    def writes(self) -> Tensor:
        """What each part adds to the residual stream, (w, t, d), without biases."""
        found = [self.embedding]
        for layer, heads, of_mlp in zip(self.layers, self.outputs, self.mlp_outputs, strict=True):
            weight = layer.output.unflatten(1, (self.heads, -1)).movedim(1, 0)  # (h, d, w)
            found += [heads[0] @ weight.mT, of_mlp]
        return torch.cat(found).detach()

    def gradients(self) -> Tensor:
        """The gradient by what each part reads of the residual stream, (r, t, d)."""
        every = [*(each for three in self.inputs for each in three), *self.mlp_inputs, self.last]
        by = dict(zip(map(id, every), torch.autograd.grad(self.value, every), strict=True))
        found = []
        for at, layer in enumerate(self.layers):
            read = zip(self.inputs[at], layer.inputs, strict=True)
            for which, (value, weight) in enumerate(read):
                slope = by[id(value)]
                slope = slope if which == 2 else self._before_rotation(slope)
                of_heads = weight.unflatten(0, (-1, slope.shape[-1]))  # (g, w, d)
                of_heads = of_heads.repeat_interleave(self.heads // len(of_heads), 0)
                found.append(_before(layer.attn_norm, self.streams[at], slope[0] @ of_heads))
            found.append(_before(layer.mlp_norm, self.middles[at], by[id(self.mlp_inputs[at])]))
        return torch.cat([*found, by[id(self.last)]]).detach()

    def _before_rotation(self, slope: Tensor) -> Tensor:
        places = torch.arange(slope.shape[2])[None]
        angles = self.model.model.rotary_emb(self.embedding, position_ids=places)
        x = torch.zeros_like(slope, requires_grad=True)
        turned, _ = apply_rotary_pos_emb(x, x, *angles)
        return torch.autograd.grad(turned, x, slope)[0]


def _before(norm: Any, stream: Tensor, slope: Tensor) -> Tensor:
    """The gradient (h, t, d) by what the norm reads, given that by what it gives."""
    x = stream.detach().expand(len(slope), -1, -1).requires_grad_()
    return torch.autograd.grad(norm(x), x, slope)[0]
