"""Attention rollout and attention flow: how much of each input reaches a token of a later layer.

Abnar & Zuidema 2020, Quantifying Attention Flow in Transformers, sections 3.1 and 3.2.
Both treat a stack as a graph: an edge of A = ½ W̄ + ½ I connects a token of one layer to each
token of the layer below, where W̄ is the mean weight over the heads and I the residual connection.
Rows are queries, and each row of A sums to 1. Rollout multiplies the layers; flow is the maximum
flow with the edges as capacities. Neither uses values, norms or feed-forward layers. Each stack
is its own graph: cross-attention connects them, without a residual connection back.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import torch
from torch import Tensor

from explorer.inference.forward_pass import ForwardPass
from explorer.system.cooperative import interruptible, step

STEPS_SOLVED = 1_200_000
"""The most edges × inputs that are solved: about three seconds on a slow core."""
UNITS = 10**12
"""Capacities are whole numbers of 1/UNITS, so that a flow is exact."""


def half_residual(weights: Tensor) -> Tensor:
    """½ W̄ + ½ I from the mean weights (t, t).

    Every row sums to 1; a fully masked row has only its residual connection.
    """
    both = (weights + torch.eye(len(weights), dtype=weights.dtype)) / 2
    return both / both.sum(-1, keepdim=True)


def half_residual_layers(forward: ForwardPass, part: str, layers: int) -> Iterator[Tensor]:
    """A (t, t) of each of the first `layers` layers."""
    for layer in range(layers):
        yield half_residual(mean_weights(forward, part, layer))


def mean_weights(forward: ForwardPass, part: str, layer: int) -> Tensor:
    """W̄ (queries, keys); memory holds few heads at a time."""
    total = torch.zeros(())
    for weights in forward.some_heads(part, layer):
        total = total + weights.sum(0)
    return total / forward.part(part).heads


def rollout(layers: Iterable[Tensor]) -> Tensor:
    """A_L · … · A_1 (t, t): row i is the distribution over inputs of token i after layer L.

    Cost: tokens³ a layer, and memory for three matrices.
    """
    return reduce(lambda below, layer: layer @ below, layers)


def edge_shares(layers: Sequence[Tensor], token: int) -> list[Tensor]:
    """The part of row `token` of the rollout that each edge carries, from the first layer on.

    An entry (i, j) of a (t, t) is the share that token i above the layer receives from token j
    below it. The entries of a layer sum to 1; the column sums of the first layer are the row.
    """
    share = torch.zeros(len(layers[0]), dtype=layers[0].dtype)
    share[token] = 1.0
    by_layer = []
    for layer in reversed(layers):
        edges = share[:, None] * layer
        by_layer.append(edges)
        share = edges.sum(0)
    return by_layer[::-1]


def has_path(masks: Iterable[Tensor]) -> Tensor:
    """Whether a path leads from row i after the last layer to input j, (t, t), by these masks."""
    paths = step = torch.empty(0)
    settled = False
    for mask in masks:
        below, step = step, (mask | torch.eye(len(mask), dtype=torch.bool)).float()
        if not paths.numel():
            paths = step
            continue
        if settled and torch.equal(step, below):
            continue  # one more layer of the same mask adds no path
        further = ((step @ paths) > 0).float()
        settled, paths = torch.equal(further, paths), further
    return paths > 0


def edges_below(layers: Sequence[Tensor], token: int) -> int:
    """The number of edges on the paths from this token down to the input.

    For masks instead of weights it is the most that there can be.
    """
    at, count = torch.zeros(len(layers[0]), dtype=torch.bool), 0
    at[token] = True
    for layer in reversed(layers):
        edges = layer[at] > 0
        count += int(edges.sum())
        at = edges.any(0)
    return count


def flow_to(layers: Sequence[Tensor], token: int) -> Iterator[float]:
    """The maximum flow from each input in turn to `token` after layer L, between 0 and 1.

    Unlike in rollout, the flows from several inputs share edges and need not sum to 1. Through
    one layer it is the row itself. Otherwise it solves one maximum flow for every input over the
    edges below the token: bound edges × inputs by `STEPS_SOLVED`.
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
    yield from (network.most(top * tokens + token, column) / UNITS for column in range(tokens))


class Network:
    """A graph with capacities, and the maximum flow from one node to another (Dinic 1970)."""

    def __init__(self, nodes: int) -> None:
        self.leaving: list[list[int]] = [[] for _ in range(nodes)]
        self.ends: list[int] = []
        self.capacity: list[int] = []

    def join(self, start: int, end: int, capacity: int) -> None:
        """Add an edge, and its reverse without capacity, along which flow can be undone."""
        for source, target, room in ((start, end, capacity), (end, start, 0)):
            self.leaving[source].append(len(self.ends))
            self.ends.append(target)
            self.capacity.append(room)

    def most(self, source: int, sink: int) -> int:
        """The maximum flow; it leaves the network unchanged."""
        free, total = list(self.capacity), 0
        while (away := self._away(sink, source, free))[source] >= 0:
            step()
            next_edge = [0] * len(self.leaving)
            while amount := self._send(source, sink, UNITS, free, away, next_edge):
                total += amount
        return total

    def _away(self, sink: int, source: int, free: list[int]) -> list[int]:
        """The number of edges with capacity from each node to the sink; −1 without a path."""
        away = [-1] * len(self.leaving)
        away[sink] = 0
        queue = deque([sink])
        while queue and away[source] < 0:
            node = queue.popleft()
            for edge in self.leaving[node]:
                below = self.ends[edge]
                if away[below] < 0 and free[edge ^ 1]:
                    away[below] = away[node] + 1
                    queue.append(below)
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
            below = self.ends[edge]
            if free[edge] and away[below] == away[node] - 1:
                amount = self._send(below, sink, min(room, free[edge]), free, away, next_edge)
                if amount:
                    free[edge] -= amount
                    free[edge ^ 1] += amount
                    return amount
            next_edge[node] += 1
        return 0
