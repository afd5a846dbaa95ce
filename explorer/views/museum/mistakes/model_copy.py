"""A copy of a model with the same weights, in which modules can be made to make a mistake."""

import copy
from typing import Any, TypeVar

from jaxtyping import Int
from torch import Tensor, nn

from explorer.catalog.pass_budget import BoundedTransformer
from models.model import Transformer
from models.stack import Stack

Module = TypeVar("Module", bound=nn.Module)


def copied(model: Transformer) -> Transformer:
    """Modules of its own, but the parameters and tables of `model`: it costs no memory."""
    shared = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared})


def modules_of(model: nn.Module, kind: type[Module]) -> list[Module]:
    """The modules of this class, in the order in which they run."""
    return [module for module in model.modules() if isinstance(module, kind)]


def with_mistake(model: Transformer, kind: type[Module], wrong: type[Module]) -> Transformer:
    """A copy whose modules of this class are of a subclass instead, with the same weights."""
    made = copied(model)
    for module in modules_of(made, kind):
        module.__class__ = wrong
    return made


class GeneratesUncached(BoundedTransformer):
    """Generates without a cache, whose keys and values such a mistake would change later."""

    def generate(
        self, source: Int[Tensor, "b s"], max_length: int = 50, **how: Any
    ) -> Int[Tensor, "b t"]:
        return super().generate(source, max_length, **(how | {"use_cache": False}))


def uncached(wrong: Transformer) -> Transformer:
    """The same copy, generating without a cache, unless generating is itself a mistake in it."""
    if type(wrong).generate is Transformer.generate:
        wrong.__class__ = GeneratesUncached
    return wrong


def stacks(model: Transformer) -> list[Stack]:
    return modules_of(model, Stack)
