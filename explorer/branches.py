"""What was written by hand and by draw: branches from one start, as steps that can be undone.

A node is one token behind its parent; node 0 is the start, and the others are numbered in
the order in which they came. In the address stand the steps, what was undone, and where
the reader is: `0d12-7.2f9~2d4_3` says that 12 and 7 were drawn behind the start (nodes 1
and 2), 9 was forced behind node 2, a drawn 4 was undone, and node 3 is on screen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

MOST_NODES = 240
"""The address holds them all and must stay short."""
MOVE = re.compile(r"(\d{1,4})([df])(\d{1,7}(?:-\d{1,7})*)")
WHOLE = re.compile(r"([^~_]*)(?:~([^~_]+))?(?:_(\d{1,4}))?")


@dataclass(frozen=True)
class Move:
    """Tokens behind a node, one after another: all drawn, or all forced by the reader."""

    parent: int
    forced: bool
    tokens: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.parent}{'f' if self.forced else 'd'}{'-'.join(map(str, self.tokens))}"


@dataclass(frozen=True)
class Node:
    """One token that was written; `forced` says that the reader chose it."""

    parent: int
    token: int
    forced: bool


@dataclass(frozen=True)
class Branches:
    """The first `done` of the moves are made, the rest is undone; `at` is the node on screen."""

    moves: tuple[Move, ...] = ()
    done: int = 0
    at: int = 0

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes that stand; the first is the start, which is no token."""
        return _nodes(self.moves[: self.done])

    @property
    def has_room(self) -> bool:
        return len(self.nodes) <= MOST_NODES

    def line(self, node: int) -> list[int]:
        """The nodes from the first token to this one."""
        nodes, found = self.nodes, list[int]()
        while node > 0:
            found.append(node)
            node = nodes[node].parent
        return found[::-1]

    def path(self, node: int | None = None) -> tuple[int, ...]:
        """The tokens up to a node, that on screen unless another is named."""
        nodes = self.nodes
        return tuple(nodes[each].token for each in self.line(self.at if node is None else node))

    def behind(self, node: int) -> dict[int, int]:
        """The tokens that were written behind a node, and the nodes that they are."""
        return {
            each.token: place
            for place, each in enumerate(self.nodes)
            if place and each.parent == node
        }

    def leaves(self) -> list[int]:
        """Where the branches end."""
        parents = {node.parent for node in self.nodes[1:]}
        return [place for place in range(1, len(self.nodes)) if place not in parents]

    def stand(self, node: int) -> Branches:
        return replace(self, at=node) if 0 <= node < len(self.nodes) else self

    def write(self, tokens: Sequence[int], *, forced: bool) -> Branches:
        """Go on from here; what stands there already is only followed."""
        at, left = self.at, list(tokens)[: MOST_NODES - len(self.nodes) + 1]
        while left and left[0] in self.behind(at):
            at = self.behind(at)[left.pop(0)]
        if not left:
            return replace(self, at=at)
        moves = (*self.moves[: self.done], Move(at, forced, tuple(left)))
        return Branches(moves, len(moves), len(_nodes(moves)) - 1)

    def undo(self) -> Branches:
        if not self.done:
            return self
        return replace(self, done=self.done - 1, at=self.moves[self.done - 1].parent)

    def redo(self) -> Branches:
        if self.done == len(self.moves):
            return self
        again = replace(self, done=self.done + 1)
        return replace(again, at=len(again.nodes) - 1)

    def __str__(self) -> str:
        """As it stands in the address; nothing where nothing was written."""
        made, undone = (
            ".".join(map(str, moves))
            for moves in (self.moves[: self.done], self.moves[self.done :])
        )
        at = f"_{self.at}" if self.at != len(self.nodes) - 1 else ""
        return f"{made}{f'~{undone}' if undone else ''}{at}"


def _nodes(moves: Sequence[Move]) -> tuple[Node, ...]:
    nodes = [Node(-1, -1, False)]
    for move in moves:
        parent = move.parent
        for token in move.tokens:
            nodes.append(Node(parent, token, move.forced))
            parent = len(nodes) - 1
    return tuple(nodes)


def from_text(text: str, known: int, ends: Collection[int], room: int) -> Branches | None:
    """What the address says, or None where it is no such thing, or does not fit.

    A token is one of `known`; behind one of `ends` nothing stands, and no branch has more
    than `room` tokens.
    """
    whole = WHOLE.fullmatch(text)
    if whole is None:
        return None
    made, undone = (_moves(part) for part in (whole[1], whole[2] or ""))
    if made is None or undone is None:
        return None
    found = Branches((*made, *undone), len(made) + len(undone))
    count, nodes = 1, found.nodes
    for move in found.moves:
        if move.parent >= count:
            return None
        count += len(move.tokens)
    depths = [0]
    for node in nodes[1:]:
        depths.append(depths[node.parent] + 1)
        if node.token >= known or (node.parent and nodes[node.parent].token in ends):
            return None
    twice = len({(node.parent, node.token) for node in nodes}) < len(nodes)
    if twice or max(depths) > room or len(nodes) > MOST_NODES + 1:
        return None
    found = replace(found, done=len(made))
    last = len(found.nodes) - 1
    at = last if whole[3] is None else int(whole[3])
    return replace(found, at=at) if at <= last else None


def _moves(text: str) -> tuple[Move, ...] | None:
    if not text:
        return ()
    found = [MOVE.fullmatch(each) for each in text.split(".")]
    if not all(found):
        return None
    return tuple(
        Move(int(each[1]), each[2] == "f", tuple(map(int, each[3].split("-"))))
        for each in found
        if each
    )
