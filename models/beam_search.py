"""Beam search: the likeliest continuations side by side, and every token that it considered.

Sources: Google's Neural Machine Translation System (Wu et al. 2016), section 7 (length
penalty); Attention Is All You Need, section 6.1 (4 beams, α = 0.6).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from models.config import TransformerConfig
from models.generation import DecodingState, Model
from models.tap import NO_TAP, Tap


@dataclass(frozen=True)
class BeamNode:
    """One token that was considered after its `parent`, an index of a node (−1: the start).

    `log_probability` is that of all tokens up to here, in nats, and `score` the same ÷ the length
    penalty. The search continued from a node that is `kept`; one that is `ended` ends the text.
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
    """All nodes in the order of their steps, and the indices of the ends, the best score first.

    An end is a node that ends the text. The nodes that are kept compete too, after the last step
    or where fewer texts than beams have ended.
    """

    nodes: tuple[BeamNode, ...]
    ends: tuple[int, ...]

    def path(self, node: int) -> list[int]:
        """The token IDs from the start to the node of this index."""
        tokens: list[int] = []
        while node >= 0:
            tokens.append(self.nodes[node].token)
            node = self.nodes[node].parent
        return tokens[::-1]


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) ÷ 6)^α; 1 for α = 0."""
    return float(((5 + length) / 6) ** alpha)


def nodes_per_step(config: TransformerConfig, beams: int) -> int:
    """The number of nodes of a step: enough that `beams` of them do not end the text."""
    return max(2, 1 + len(set(config.generation.eos_ids))) * beams


def beam_search(
    model: Model,
    prompt: Int[Tensor, "b t"],
    *,
    beams: int = 4,
    max_length: int = 50,
    alpha: float = 0.6,
) -> Beams:
    """The best continuations of one prompt, or answers to one source: the last of `beam_steps`."""
    *_, last = beam_steps(model, prompt, beams=beams, max_length=max_length, alpha=alpha)
    return last


def beam_steps(
    model: Model,
    prompt: Int[Tensor, "b t"],
    *,
    beams: int = 4,
    max_length: int = 50,
    alpha: float = 0.6,
    tap: Tap = NO_TAP,
) -> Iterator[Beams]:
    """The search after each of its steps; stop by stopping.

    Each step continues the `beams` likeliest unended nodes and considers `nodes_per_step` next
    tokens. The search ends when no unended node can still beat the worst of `beams` ended
    ones, after `max_length` tokens, or where the positions end. Cost of a step: the forward
    pass of one token per beam, which the tap sees. ValueError for invalid arguments.
    """
    if beams < 1 or max_length < 1:
        raise ValueError(f"beams and max_length must be at least 1, not {beams}, {max_length}.")
    if len(prompt) != 1:
        raise ValueError(f"Beam search continues one prompt, not {len(prompt)}: call it for each.")
    state, config = DecodingState(model, prompt, tap=tap), model.config

    def steps() -> Iterator[Beams]:
        nodes: list[BeamNode] = []
        alive, ended, logits = [-1], list[int](), state.first_logits
        last = min(max_length, state.room) - 1
        for step in range(last + 1):
            log_probabilities = logits.log_softmax(-1)
            so_far = [nodes[n].log_probability if n >= 0 else 0.0 for n in alive]
            before = torch.tensor(so_far, device=logits.device)
            total = (before[:, None] + log_probabilities).flatten()
            best = total.topk(min(nodes_per_step(config, beams), int(total.isfinite().sum())))
            penalty, first, rows = length_penalty(step + 1, alpha), len(nodes), list[int]()
            for value, flat in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                row, token = divmod(flat, logits.shape[1])
                is_end = token in config.generation.eos_ids
                is_kept = not is_end and len(rows) < beams
                rows += [row] if is_kept else []
                score = value / penalty
                nodes.append(BeamNode(alive[row], token, step, value, score, is_kept, is_end))
            alive = [n for n in range(first, len(nodes)) if nodes[n].kept]
            ended += [n for n in range(first, len(nodes)) if nodes[n].ended]
            ended = sorted(ended, key=lambda n: -nodes[n].score)[:beams]
            open_ends = alive if step == last or len(ended) < beams else []
            best_ends = sorted([*ended, *open_ends], key=lambda n: -nodes[n].score)[:beams]
            yield Beams(tuple(nodes), tuple(best_ends))
            if step == last or not alive:
                return
            # At best a log-probability stays as it is and its length grows to the largest.
            likeliest = max(nodes[n].log_probability for n in alive)
            best_score = likeliest / length_penalty(max_length, max(alpha, 0.0))
            if len(ended) == beams and best_score <= nodes[ended[-1]].score:
                return
            take_rows(state, rows)
            tokens = torch.tensor([[nodes[n].token] for n in alive], device=logits.device)
            logits = state.read(tokens)[:, -1]

    return steps()


def take_rows(state: DecodingState, rows: list[int]) -> None:
    """Continue from these rows of the batch, which may repeat or be left out."""
    index = torch.tensor(rows, device=state.first_logits.device)
    assert state.cache is not None
    for layer in (layer for block in state.cache for layer in block.values() if layer.length):
        layer.keys, layer.values = (_rows_of(cached, index) for cached in layer.read())
    state.keep = None if state.keep is None else state.keep[index]


def _rows_of(cached: Tensor, rows: Tensor) -> Tensor:
    """These rows of a cache, with room for one more token."""
    _, groups, length, width = cached.shape
    room = cached.new_empty(len(rows), groups, length + 1, width)
    torch.index_select(cached, 0, rows, out=room[:, :, :length])
    return room
