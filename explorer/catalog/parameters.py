"""The parameter ledger: every number of a model once, as a tree whose leaves say how many and why.

A leaf is one matrix or norm with its bias. Layers that are built alike stand once, with how
many there are of them; what is used twice is counted where it stands first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby

import torch
from torch import nn

from explorer.catalog.part_sizes import Term, called, sides
from models import Transformer, TransformerConfig

COMPUTED = ("sinusoidal", "rotary", "alibi")
"""Positions that hold nothing learnt."""
MOST_ADDED = 4
"""Terms of a sum that are written out."""


@dataclass(frozen=True)
class Node:
    """A part of a model: `times` alike, of `each` numbers; a leaf has terms, others children.

    `said` is why nothing is counted here.
    """

    name: str
    each: int = 0
    terms: tuple[Term, ...] = ()
    children: tuple[Node, ...] = ()
    times: int = 1
    said: str = ""

    @property
    def count(self) -> int:
        return self.times * self.each

    @property
    def symbols(self) -> str:
        """`d_model × d_ff + d_ff`."""
        return _added([" × ".join(name for name, _ in term) for term in self.terms])

    @property
    def numbers(self) -> str:
        """`64 × 256 + 256`; of layers that are alike, how many times how much; else a short sum."""
        if self.times > 1:
            return f"{self.times:,} × {self.each:,}"
        if self.children:
            return self._sum_of_children()
        return _added([" × ".join(f"{size:,}" for _, size in term) for term in self.terms])

    def _sum_of_children(self) -> str:
        """`4 × 262,656`, or `64 + 128`; nothing where there are too many to be read."""
        counts = [child.count for child in self.children if child.count]
        if len(counts) > 1 and len(set(counts)) == 1:
            return f"{len(counts)} × {counts[0]:,}"
        return " + ".join(f"{count:,}" for count in counts) if len(counts) <= MOST_ADDED else ""


def _added(terms: list[str]) -> str:
    alike = len(terms) == 2 and terms[0] == terms[1]
    return f"2 × {terms[0]}" if alike else " + ".join(terms)


@lru_cache(32)
def of_config(config: TransformerConfig) -> Node:
    """The ledger of a model that is not there: built without memory for its numbers."""
    with torch.device("meta"):
        return ledger(Transformer(config))


def ledger(model: Transformer) -> Node:
    """The children of every node add up to it, and the first node is the whole model."""
    book = _Book(model.config)
    stacks = [book.node((name,), module) for name, module in model.named_children()]
    return _sum("all parameters", [node for node in stacks if node])


def lines(node: Node, depth: int = 0) -> Iterator[tuple[int, Node]]:
    """Every node with its depth, as one reads them down the page."""
    yield depth, node
    for child in node.children:
        yield from lines(child, depth + 1)


def _sum(name: str, children: list[Node]) -> Node:
    return Node(name, sum(child.count for child in children), children=tuple(children))


@dataclass
class _Book:
    """What has been counted so far: the name of each tensor by which it is known."""

    config: TransformerConfig
    counted: dict[int, str] = field(default_factory=dict)

    def node(self, path: tuple[str, ...], module: nn.Module) -> Node | None:
        """One module and what is in it; None where it holds nothing."""
        name = called(path, self.config)
        if path[-1] == "positions" and self.config.positions in COMPUTED:
            return Node(name, said="computed, not learnt")
        if path[-1] == "blocks":
            return self.layers(path, module)
        inside = [self.node((*path, inner), child) for inner, child in module.named_children()]
        found = [node for node in [*inside, *self.own(path, module)] if node]
        if len(found) == 1 and len(path) > 1:
            return replace(found[0], name=name)
        return _sum(name, found) if found else None

    def layers(self, path: tuple[str, ...], module: nn.Module) -> Node:
        """The layers of a stack: those that follow each other and are alike stand once."""
        made = [self.node((*path, ""), block) or Node("") for block in module.children()]
        groups, first = [], 0
        for node, same in groupby(made):
            times = len(list(same))
            some = f"layers {first} to {first + times - 1}, each"
            name = f"{times} layers, each" if times == len(made) else some
            groups.append(replace(node, times=times, name=name if times > 1 else f"layer {first}"))
            first += times
        return groups[0] if len(groups) == 1 else _sum("layers", groups)

    def own(self, path: tuple[str, ...], module: nn.Module) -> list[Node]:
        """What the module holds itself; what was counted before is said and not counted."""
        name = "words" if path == ("head",) else called(path, self.config)
        tensors = dict(module.named_parameters(recurse=False))
        if path == ("head",) and self.config.tie_embeddings and self.config.head != "classifier":
            tied = Node(name, said="tied to the token embedding, which is counted there")
            return [tied, *([self.leaf("bias", path, tensors)] if tensors else [])]
        known = {each: self.counted.get(id(tensor)) for each, tensor in tensors.items()}
        there = sorted({whose for whose in known.values() if whose})
        found = [
            Node(name, said=f"shared with the {each}, which is counted there") for each in there
        ]
        new = {each: tensor for each, tensor in tensors.items() if not known[each]}
        whose = f"{name} of the {path[0]}" if path[-1] == "embedding" else name
        self.counted.update((id(tensor), whose) for tensor in new.values())
        return [*found, *([self.leaf(name, path, new)] if new else [])]

    def leaf(self, name: str, path: tuple[str, ...], tensors: dict[str, nn.Parameter]) -> Node:
        before, behind = sides(path, self.config)
        terms = tuple(behind if each == "bias" else (*before, *behind) for each in tensors)
        return Node(name, sum(tensor.numel() for tensor in tensors.values()), terms)
