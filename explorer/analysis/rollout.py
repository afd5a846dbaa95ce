"""Attention rollout and attention flow: what reaches a token of a later layer from the input.

Abnar & Zuidema 2020, Quantifying Attention Flow in Transformers, sections 3.1 and 3.2.
Both treat a stack as a graph: from a token of one layer to each token of the layer below leads
an edge of A = ½ W̄ + ½ I, where W̄ is the mean weight over the heads and I stands for the
residual connection. Rows are queries, and each row of A sums to 1. Rollout multiplies the
layers; flow is the maximum flow with the edges as capacities. Neither sees values, norms or
feed-forward layers. Each stack is a graph of its own: cross-attention leads from one to
another, without a residual connection back.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import torch
from torch import Tensor

from explorer.inference.forward_pass import ForwardPass
from explorer.system.cooperative import interruptible, step

STEPS_SOLVED = 1_200_000
"""Edges × inputs that are solved: about three seconds on a slow core."""
UNITS = 10**12
"""Capacities are integers of this unit, so that a flow is found exactly."""


def half_residual(weights: Tensor) -> Tensor:
    """½ W̄ + ½ I from the mean weights (t, t).

    Every row sums to 1; a fully masked row keeps itself alone.
    """
    both = (weights + torch.eye(len(weights), dtype=weights.dtype)) / 2
    return both / both.sum(-1, keepdim=True)


def half_residual_layers(forward: ForwardPass, part: str, layers: int) -> Iterator[Tensor]:
    """A (t, t) of each of the first `layers` layers; few heads are in memory at a time."""
    for layer in range(layers):
        total = torch.zeros(())
        for weights in forward.some_heads(part, layer):
            total = total + weights.sum(0)
        yield half_residual(total / forward.part(part).heads)


def rollout(layers: Iterable[Tensor]) -> Tensor:
    """A_L · … · A_1 (t, t): row i is the distribution over inputs of token i after layer L.

    Cost: tokens³ a layer, and memory for three matrices.
    """
    return reduce(lambda below, layer: layer @ below, layers)


def edge_shares(layers: Sequence[Tensor], token: int) -> list[Tensor]:
    """What each edge of each layer, the first first, carries of row `token` of the rollout.

    An entry (i, j) of a (t, t) is the share that token i above the layer passes on from token j
    below it. The entries of a layer sum to one; the columns of the first are the row.
    """
    share = torch.zeros(len(layers[0]), dtype=layers[0].dtype)
    share[token] = 1.0
    found = []
    for layer in reversed(layers):
        edges = share[:, None] * layer
        found.append(edges)
        share = edges.sum(0)
    return found[::-1]


def reached(masks: Iterable[Tensor]) -> Tensor:
    """Whether a path leads from row i after the last layer to input j, (t, t), by these masks."""
    found = step = torch.empty(0)
    settled = False
    for mask in masks:
        below, step = step, (mask | torch.eye(len(mask), dtype=torch.bool)).float()
        if not found.numel():
            found = step
            continue
        if settled and torch.equal(step, below):
            continue  # one more layer of the same mask reaches nothing new
        further = ((step @ found) > 0).float()
        settled, found = torch.equal(further, found), further
    return found > 0


def edges_below(layers: Sequence[Tensor], token: int) -> int:
    """How many edges lie on the paths from this token down to the input.

    Masks in place of weights give the most that there can be.
    """
    at, count = torch.zeros(len(layers[0]), dtype=torch.bool), 0
    at[token] = True
    for layer in reversed(layers):
        edges = layer[at] > 0
        count += int(edges.sum())
        at = edges.any(0)
    return count


def flow_to(layers: Sequence[Tensor], token: int) -> Iterator[float]:
    """The maximum flow from each input in turn up to `token` after layer L, between 0 and 1.

    Unlike rollout, the flows from several inputs share edges and need not sum to 1. Through
    one layer it is the row itself. Else one maximum flow for every input over the edges below
    the token: bound edges × inputs by `STEPS_SOLVED`.
    """
    tokens, top = len(layers[0]), len(layers)
    if top == 1:
        yield from layers[0][token].tolist()
        return
    network = Network(tokens * (top + 1))
    rows = torch.tensor([token])
    for level in interruptible(reversed(range(top))):  # nodes of level 0 are the input
        whole = (layers[level][rows].double() * UNITS).floor().long()
        for at, lower in whole.nonzero().tolist():
            above, below = (level + 1) * tokens + int(rows[at]), level * tokens + lower
            network.join(above, below, int(whole[at, lower]))
        rows = whole.any(0).nonzero()[:, 0]
    for column in range(tokens):
        yield network.most(top * tokens + token, column) / UNITS


class Network:
    """A graph with capacities, and the maximum flow from one node to another (Dinic 1970)."""

    def __init__(self, nodes: int) -> None:
        self.leaving: list[list[int]] = [[] for _ in range(nodes)]
        self.ends: list[int] = []
        self.capacity: list[int] = []

    def join(self, start: int, end: int, capacity: int) -> None:
        """An edge; its twin in the other direction has no capacity, for what is sent back."""
        for node, other, room in ((start, end, capacity), (end, start, 0)):
            self.leaving[node].append(len(self.ends))
            self.ends.append(other)
            self.capacity.append(room)

    def most(self, source: int, sink: int) -> int:
        """The maximum flow; the network itself stays as it is."""
        free, total = list(self.capacity), 0
        while (away := self._away(sink, source, free))[source] >= 0:
            step()
            next_edge = [0] * len(self.leaving)
            while sent := self._send(source, sink, UNITS, free, away, next_edge):
                total += sent
        return total

    def _away(self, sink: int, source: int, free: list[int]) -> list[int]:
        """How many edges with capacity lead from each node to the sink; −1 where no path does."""
        away = [-1] * len(self.leaving)
        away[sink] = 0
        reached = deque([sink])
        while reached and away[source] < 0:
            node = reached.popleft()
            for edge in self.leaving[node]:
                other = self.ends[edge]
                if away[other] < 0 and free[edge ^ 1]:
                    away[other] = away[node] + 1
                    reached.append(other)
        return away

    def _send(
        self,
        node: int,
        sink: int,
        room: int,
        free: list[int],
        away: list[int],
        next_edge: list[int],
    ) -> int:
        """As much of `room` as fits along one shortest path; `next_edge` skips dead ends."""
        if node == sink:
            return room
        edges = self.leaving[node]
        while next_edge[node] < len(edges):
            edge = edges[next_edge[node]]
            other = self.ends[edge]
            if free[edge] and away[other] == away[node] - 1:
                sent = self._send(other, sink, min(room, free[edge]), free, away, next_edge)
                if sent:
                    free[edge] -= sent
                    free[edge ^ 1] += sent
                    return sent
            next_edge[node] += 1
        return 0
