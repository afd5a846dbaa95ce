"""Beam search: the likeliest continuations side by side, every one that was considered kept.

Sources: Google's Neural Machine Translation System (Wu et al. 2016), section 7 (length
penalty); Attention Is All You Need, section 6.1 (4 beams, α = 0.6).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from models.config import TransformerConfig
from models.generation import beginning
from models.going_on import GoingOn
from models.transformer import Transformer


@dataclass(frozen=True)
class Node:
    """One token that was considered behind its `parent`, a place among the nodes (−1: the start).

    `log_probability` is that of everything from the start up to here, in nats; `score` is
    it ÷ the length penalty. A node is `kept` when the search went on from it, and
    `ended` when it ends the text.
    """

    parent: int
    token: int
    step: int
    log_probability: float
    score: float
    kept: bool
    ended: bool


@dataclass(frozen=True)
class Beams:
    """All nodes in the order of their steps, and the places of the ends, the best score first.

    An end is a node that ends the text, or one that stands: all of those compete when nothing
    more can be written, before it only where fewer texts than beams have ended.
    """

    nodes: tuple[Node, ...]
    ends: tuple[int, ...]

    def path(self, place: int) -> list[int]:
        """The tokens from the start to this node."""
        tokens: list[int] = []
        while place >= 0:
            tokens.append(self.nodes[place].token)
            place = self.nodes[place].parent
        return tokens[::-1]


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) ÷ 6)^α; 1 for α = 0."""
    return float(((5 + length) / 6) ** alpha)


def considered(config: TransformerConfig, beams: int) -> int:
    """How many nodes a step looks at: `beams` can go on, however many tokens end the text."""
    return max(2, 1 + len(_ends(config))) * beams


def _ends(config: TransformerConfig) -> set[int | None]:
    """The tokens that end a text."""
    return {config.eos_id, *config.more_eos_ids} - {None}


def beam_search(
    model: Transformer,
    prompt: Int[Tensor, "1 t"],
    *,
    beams: int = 4,
    max_length: int = 50,
    alpha: float = 0.6,
) -> Beams:
    """The best continuations of one prompt, or answers to one source: the last of `beam_steps`."""
    *_, found = beam_steps(model, prompt, beams=beams, max_length=max_length, alpha=alpha)
    return found


def beam_steps(
    model: Transformer,
    prompt: Int[Tensor, "1 t"],
    *,
    beams: int = 4,
    max_length: int = 50,
    alpha: float = 0.6,
) -> Iterator[Beams]:
    """The search after each of its steps; stop by stopping.

    Each step goes on from the `beams` likeliest unended nodes and considers `considered` of
    what follows. It ends when no unended node can still beat the worst of `beams` ended
    ones, after `max_length` tokens, or where the positions end. A step costs one token's
    pass for each beam. ValueError for what means nothing.
    """
    if beams < 1 or max_length < 1:
        raise ValueError(f"beams and max_length must be at least 1, not {beams}, {max_length}.")
    config, going = model.config, GoingOn(model, prompt)
    ends = _ends(config)
    nodes: list[Node] = []
    alive, ended, logits = [-1], list[int](), going.first
    room = config.max_len - beginning(model, prompt).shape[1] + 1
    last = min(max_length, room) - 1
    for step in range(last + 1):
        chances = logits.log_softmax(-1)
        before = torch.tensor([nodes[n].log_probability if n >= 0 else 0.0 for n in alive])
        together = (before[:, None] + chances).flatten()
        best = together.topk(min(considered(config, beams), int(together.isfinite().sum())))
        penalty, going_on, rows = length_penalty(step + 1, alpha), list[int](), list[int]()
        for value, flat in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            row, token = divmod(flat, chances.shape[1])
            ends_here = token in ends
            is_kept = not ends_here and len(going_on) < beams
            if is_kept:
                going_on.append(len(nodes))
                rows.append(row)
            elif ends_here:
                ended.append(len(nodes))
            parent = alive[row]
            nodes.append(Node(parent, token, step, value, value / penalty, is_kept, ends_here))
        ended = sorted(ended, key=lambda n: -nodes[n].score)[:beams]
        alive = going_on
        open_ends = alive if step == last or len(ended) < beams else []
        found = sorted([*ended, *open_ends], key=lambda n: -nodes[n].score)[:beams]
        yield Beams(tuple(nodes), tuple(found))
        is_won = len(ended) == beams and not _may_beat(nodes, alive, ended, max_length, alpha)
        if step == last or not alive or is_won:
            return
        going.take(rows)
        logits = going.read(torch.tensor([[nodes[place].token] for place in alive]))[:, -1]


def _may_beat(
    nodes: list[Node], alive: list[int], ended: list[int], max_length: int, alpha: float
) -> bool:
    """Whether an unended node could still score better: at best it adds nothing and grows long."""
    best = max((nodes[n].log_probability for n in alive), default=-math.inf)
    return best / length_penalty(max_length, max(alpha, 0.0)) > nodes[ended[-1]].score
