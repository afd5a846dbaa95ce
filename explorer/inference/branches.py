"""What was written by hand and by draw: branches from one start, as steps that can be undone.

A node is one token behind its parent; node 0 is the start, and the others are numbered in
the order in which they came. In the address stand the steps, and what was undone:
`0d12-7.1.1f9~3d4` says that 12 and 7 were drawn behind the start (nodes 1 and 2), that the
reader went back to node 1 and forced 9 behind it (node 3), and that a drawn 4 was undone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

MOST_NODES = 240
"""The address holds them all and must stay short; it holds no more ways back than these."""
FULL = (
    f"The branches hold {MOST_NODES} tokens in all, so {{room:,}} more fit: "
    "Undo or Clear makes room."
)
MOVE = re.compile(r"(\d{1,4})(?:([df])(\d{1,7}(?:-\d{1,7})*))?")
WHOLE = re.compile(r"([^~]*)(?:~([^~]+))?")


@dataclass(frozen=True)
class Move:
    """Tokens behind a node, one after another: all drawn, or all forced by the reader.

    Without tokens the reader only goes to that node.
    """

    parent: int
    forced: bool = False
    tokens: tuple[int, ...] = ()

    def __str__(self) -> str:
        if not self.tokens:
            return str(self.parent)
        return f"{self.parent}{'f' if self.forced else 'd'}{'-'.join(map(str, self.tokens))}"


@dataclass(frozen=True)
class Node:
    """One token that was written; `forced` says that the reader chose it."""

    parent: int
    token: int
    forced: bool


@dataclass(frozen=True)
class Branches:
    """The first `done` of the moves are made, the rest is undone."""

    moves: tuple[Move, ...] = ()
    done: int = 0

    @property
    def at(self) -> int:
        """The node on screen: where the last move led."""
        last = self.moves[self.done - 1] if self.done else Move(0)
        return len(self.nodes) - 1 if last.tokens else last.parent

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
    def written(self) -> Branches:
        """The same nodes, without the ways back and what was undone."""
        moves = tuple(move for move in self.moves[: self.done] if move.tokens)
        return Branches(moves, len(moves))

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
        """Go to a node, as a step; what was undone can still be made again."""
        if node == self.at or not 0 <= node < len(self.nodes):
            return self
        moves, done = list(self.moves), self.done
        ways = [at for at, move in enumerate(moves) if not move.tokens]
        if len(ways) == MOST_NODES:  # forget the oldest, or what would be made again last
            forgotten = ways[0] if ways[0] < done else ways[-1]
            del moves[forgotten]
            done -= forgotten < done
        return Branches((*moves[:done], Move(node), *moves[done:]), done + 1)

    def follow(self, tokens: Sequence[int], behind: int) -> tuple[int, list[int]]:
        """The node to which what stands there leads, and the tokens that do not stand there."""
        at, left = behind, list(tokens)
        while left and left[0] in self.children[at]:
            at = self.children[at][left.pop(0)]
        return at, left

    def fitting(self, tokens: Sequence[int]) -> int:
        """How many of these tokens can be written here."""
        _, left = self.follow(tokens, self.at)
        return len(tokens) - max(0, len(left) - self.room)

    def write(self, tokens: Sequence[int], *, forced: bool, behind: int | None = None) -> Branches:
        """Go on from here, or from `behind`, in one step; what stands there is only followed.

        ValueError, and nothing is written, where not all of it fits.
        """
        at, left = self.follow(tokens, self.at if behind is None else behind)
        if len(left) > self.room:
            raise ValueError(FULL.format(room=self.room))
        if not left:
            return self.stand(at)
        moves = (*self.moves[: self.done], Move(at, forced, tuple(left)))
        return Branches(moves, len(moves))

    def undo(self) -> Branches:
        """Before the last step, whether it wrote something or only went to another node."""
        return Branches(self.moves, max(0, self.done - 1))

    def redo(self) -> Branches:
        return Branches(self.moves, min(len(self.moves), self.done + 1))

    @property
    def made(self) -> str:
        """The moves that are made, as they stand in the address."""
        return ".".join(map(str, self.moves[: self.done]))

    def __str__(self) -> str:
        """As it stands in the address; nothing where nothing was written."""
        undone = ".".join(map(str, self.moves[self.done :]))
        return f"{self.made}{f'~{undone}' if undone else ''}"


def _ways(moves: Sequence[Move]) -> int:
    """How many of the moves only go to another node."""
    return sum(not move.tokens for move in moves)


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
    if _ways(found.moves) > MOST_NODES:
        return None
    return Branches(found.moves, len(made))


def _moves(text: str) -> tuple[Move, ...] | None:
    if not text:
        return ()
    found = [MOVE.fullmatch(each) for each in text.split(".")]
    if not all(found):
        return None
    return tuple(
        Move(int(each[1]), each[2] == "f", tuple(map(int, each[3].split("-"))) if each[3] else ())
        for each in found
        if each
    )
