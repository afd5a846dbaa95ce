"""A copy of a model whose leaves can be put in place of others, with the same weights."""

import copy
from collections.abc import Iterator
from typing import Any

from jaxtyping import Int
from torch import Tensor, nn

from models.block import Block
from models.transformer import Stack, Transformer


def copied(model: Transformer) -> Transformer:
    """Modules of its own, but the parameters and tables of `model`: it costs no memory."""
    shared = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared})


class ReadsAgain(Transformer):
    """Writes without a cache: with these mistakes what was read before does not stay as it was."""

    def generate(
        self, source: Int[Tensor, "b s"], max_length: int = 50, **how: Any
    ) -> Int[Tensor, "b t"]:
        return super().generate(source, max_length, **(how | {"use_cache": False}))


def reading_again(wrong: Transformer) -> Transformer:
    """The same copy, which reads everything anew at every step, unless it writes by a mistake."""
    if type(wrong) is Transformer:
        wrong.__class__ = ReadsAgain
    return wrong


def stacks(model: Transformer) -> list[Stack]:
    return [stack for stack in (model.encoder, model.decoder) if stack is not None]


def blocks(stack: Stack) -> list[Block]:
    return [block for block in stack.blocks if isinstance(block, Block)]


def attentions(model: Transformer) -> Iterator[tuple[nn.Module, str]]:
    """Where every attention of the model hangs: its block, and what it is called there."""
    for stack in stacks(model):
        for block in blocks(stack):
            yield block, "self_attn"
            if block.has_cross:
                yield block, "cross_attn"
