"""A copy of a model whose leaves can be put in place of others, with the same weights."""

import copy
from collections.abc import Iterator

from torch import nn

from models.block import Block
from models.transformer import Stack, Transformer


def copied(model: Transformer) -> Transformer:
    """Modules of its own, but the parameters and tables of `model`: it costs no memory."""
    shared = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared})


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
