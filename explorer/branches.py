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
from functools import cached_property

MOST_NODES = 240
"""The address holds them all and must stay short."""
FULL = (
    f"The branches hold {MOST_NODES} tokens in all, so {{room:,}} more fit: "
    "Undo or Clear makes room."
)
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

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes that stand; the first is the start, which is no token."""
        return _nodes(self.moves[: self.done])

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """How many tokens stand up to each node."""
        depths = [0]
        for node in self.nodes[1:]:
            depths.append(depths[node.parent] + 1)
        return tuple(depths)

    @cached_property
    def children(self) -> tuple[dict[int, int], ...]:
        """For each node the tokens that were written behind it, and the nodes that they are."""
        found = tuple(dict[int, int]() for _ in self.nodes)
        for place, node in enumerate(self.nodes[1:], 1):
            found[node.parent][node.token] = place
        return found

    @property
    def room(self) -> int:
        """How many more nodes there may be."""
        return MOST_NODES + 1 - len(self.nodes)

    @property
    def before(self) -> Branches:
        """What stood before the last move."""
        return Branches(self.moves[: self.done - 1], self.done - 1)

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

    def leaves(self) -> list[int]:
        """Where the branches end."""
        return [place for place, behind in enumerate(self.children) if place and not behind]

    def stand(self, node: int) -> Branches:
        return replace(self, at=node) if 0 <= node < len(self.nodes) else self

    def follow(self, tokens: Sequence[int]) -> tuple[Branches, list[int]]:
        """Where what stands there already leads, and the tokens that do not stand there."""
        at, left = self.at, list(tokens)
        while left and left[0] in self.children[at]:
            at = self.children[at][left.pop(0)]
        return replace(self, at=at), left

    def fitting(self, tokens: Sequence[int]) -> int:
        """How many of these tokens can be written here."""
        _, left = self.follow(tokens)
        return len(tokens) - max(0, len(left) - self.room)

    def write(self, tokens: Sequence[int], *, forced: bool) -> Branches:
        """Go on from here; what stands there already is only followed.

        ValueError, and nothing is written, where not all of it fits.
        """
        led, left = self.follow(tokens)
        if len(left) > self.room:
            raise ValueError(FULL.format(room=self.room))
        if not left:
            return led
        moves = (*self.moves[: self.done], Move(led.at, forced, tuple(left)))
        return Branches(moves, len(moves), len(self.nodes) + len(left) - 1)

    def undo(self) -> Branches:
        if not self.done:
            return self
        return replace(self, done=self.done - 1, at=self.moves[self.done - 1].parent)

    def redo(self) -> Branches:
        if self.done == len(self.moves):
            return self
        again = replace(self, done=self.done + 1)
        return replace(again, at=len(again.nodes) - 1)

    @property
    def made(self) -> str:
        """The moves that are made, as they stand in the address."""
        return ".".join(map(str, self.moves[: self.done]))

    def __str__(self) -> str:
        """As it stands in the address; nothing where nothing was written."""
        undone = ".".join(map(str, self.moves[self.done :]))
        at = f"_{self.at}" if self.at != len(self.nodes) - 1 else ""
        return f"{self.made}{f'~{undone}' if undone else ''}{at}"


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
    for node in nodes[1:]:
        if node.token >= known or (node.parent and nodes[node.parent].token in ends):
            return None
    twice = len({(node.parent, node.token) for node in nodes}) < len(nodes)
    if twice or max(found.depths) > room or len(nodes) > MOST_NODES + 1:
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
