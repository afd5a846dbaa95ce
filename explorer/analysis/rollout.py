"""What a token of a later layer can have taken from the text: attention rollout and attention flow.

Abnar & Zuidema 2020, Quantifying Attention Flow in Transformers, sections 3.1 and 3.2.
Both see a stack as a graph: from a token of one layer to each token of the layer below
runs an edge of A = ½ W̄ + ½ I, where W̄ is the mean weight over the heads and I stands for
the residual stream. Rows are queries, and each row of A sums to one. Rollout multiplies
along the paths and adds over them; flow asks how much fits through the edges as through
pipes. Neither sees values, norms or feed-forward layers. Each stack is one graph of its
own: cross-attention leads from one to another, and has no residual path back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from explorer.inference.forward_pass import ForwardPass

STEPS_SOLVED = 1_200_000
"""Edges × inputs; more take longer than about three seconds on a slow core."""
UNITS = 10**12
"""Capacities are whole numbers of this part, so that a flow is found exactly."""


def half_residual(weights: Tensor) -> Tensor:
    """½ W̄ + ½ I from the mean weights (t, t): half is looked up, half stays where it is.

    Every row sums to one; a row that looks nowhere stays with itself alone.
    """
    both = (weights + torch.eye(len(weights), dtype=weights.dtype)) / 2
    return both / both.sum(-1, keepdim=True)


def half_residual_layers(forward: ForwardPass, part: str, layers: int) -> Iterator[Tensor]:
    """A (t, t) of the first so many layers, from the first on; few heads are held at a time."""
    for layer in range(layers):
        total = torch.zeros(())
        for weights in forward.some_heads(part, layer):
            total = total + weights.sum(0)
        yield half_residual(total / forward.part(part).heads)


def rollout(mixing: Sequence[Tensor] | Iterator[Tensor]) -> Tensor:
    """A_L · … · A_1 (t, t): row i says what of token i, after layer L, is from which input.

    Rows are distributions. Costs tokens³ a layer, and memory for three matrices.
    """
    found = torch.empty(0)
    for layer in mixing:
        found = layer @ found if found.numel() else layer
    return found


def reached(masks: Sequence[Tensor] | Iterator[Tensor]) -> Tensor:
    """Whether a path leads from row i after the last layer to input j, (t, t), by these masks."""
    found = step = torch.empty(0)
    settled = False
    for mask in masks:
        below, step = step, (mask | torch.eye(len(mask), dtype=torch.bool)).float()
        if not found.numel():
            found = step
            continue
        if settled and torch.equal(step, below):
            continue  # one more layer of the same mask leads nowhere else
        further = ((step @ found) > 0).float()
        settled, found = torch.equal(further, found), further
    return found > 0


def edges_below(mixing: Sequence[Tensor], token: int) -> int:
    """How many edges lie on the ways from this token down to the text.

    Masks in place of weights give the most that there can be.
    """
    at, count = torch.zeros(len(mixing[0]), dtype=torch.bool), 0
    at[token] = True
    for layer in reversed(mixing):
        taken = layer[at] > 0
        count += int(taken.sum())
        at = taken.any(0)
    return count


def flow_to(mixing: Sequence[Tensor], token: int) -> Iterator[float]:
    """The most that fits through the graph from each input in turn up to `token` after layer L.

    Between 0 and 1; unlike rollout, the flows to several inputs share edges and need not
    sum to one. Through one layer that is the row itself. Else one maximum flow for every
    input over the edges below the token: bound edges × inputs by `STEPS_SOLVED`.
    """
    tokens, top = len(mixing[0]), len(mixing)
    if top == 1:
        yield from mixing[0][token].tolist()
        return
    network = Network(tokens * (top + 1))
    rows = torch.tensor([token])
    for level in reversed(range(top)):  # nodes of level 0 are the text
        whole = (mixing[level][rows].double() * UNITS).floor().long()
        for at, lower in whole.nonzero().tolist():
            above, below = (level + 1) * tokens + int(rows[at]), level * tokens + lower
            network.join(above, below, int(whole[at, lower]))
        rows = whole.any(0).nonzero()[:, 0]
    for column in range(tokens):
        yield network.most(top * tokens + token, column) / UNITS


class Network:
    """Pipes between numbered places, and the most that flows from one to another (Dinic 1970)."""

    def __init__(self, places: int) -> None:
        self.leaving: list[list[int]] = [[] for _ in range(places)]
        self.ends: list[int] = []
        self.capacity: list[int] = []

    def join(self, start: int, end: int, capacity: int) -> None:
        """A pipe; its twin in the other direction is empty, for what is sent back."""
        for place, other, room in ((start, end, capacity), (end, start, 0)):
            self.leaving[place].append(len(self.ends))
            self.ends.append(other)
            self.capacity.append(room)

    def most(self, source: int, sink: int) -> int:
        """The maximum flow; the network itself stays as it is."""
        free, total = list(self.capacity), 0
        while (away := self._away(sink, source, free))[source] >= 0:
            following = [0] * len(self.leaving)
            while sent := self._send(source, sink, free, away, following):
                total += sent
        return total

    def _away(self, sink: int, source: int, free: list[int]) -> list[int]:
        """How many free pipes each place is from the sink; −1 where no way was found."""
        away = [-1] * len(self.leaving)
        away[sink] = 0
        waiting = deque([sink])
        while waiting and away[source] < 0:
            place = waiting.popleft()
            for pipe in self.leaving[place]:
                other = self.ends[pipe]
                if away[other] < 0 and free[pipe ^ 1]:
                    away[other] = away[place] + 1
                    waiting.append(other)
        return away

    def _send(
        self, source: int, sink: int, free: list[int], away: list[int], following: list[int]
    ) -> int:
        """As much as fits along one shortest way; `following` skips pipes that lead nowhere."""
        way: list[int] = []
        place = source
        while place != sink:
            pipes = self.leaving[place]
            while following[place] < len(pipes):
                pipe = pipes[following[place]]
                if free[pipe] and away[self.ends[pipe]] == away[place] - 1:
                    way.append(pipe)
                    place = self.ends[pipe]
                    break
                following[place] += 1
            else:
                if not way:
                    return 0
                place = self.ends[way.pop() ^ 1]
                following[place] += 1
        sent = min(free[pipe] for pipe in way)
        for pipe in way:
            free[pipe] -= sent
            free[pipe ^ 1] += sent
        return sent
