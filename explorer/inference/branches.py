"""Sampled and forced tokens as branches of one tree, with undo and redo.

A node is one token after its parent; node 0 is the root, the others are numbered in the
order of appearance. The address has the actions, then the undone actions:
`0d12-7.1.1f9~3d4` says that 12 and 7 were sampled after the root (nodes 1 and 2), that the
reader went back to node 1 and forced 9 after it (node 3), and that the reader undid a sampled 4.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

MAX_NODES = 240
"""The address has all nodes and must stay short. It has at most as many jumps."""
NO_ROOM = (
    f"The branches hold at most {MAX_NODES} tokens in total, so {{room:,}} more fit: undo or "
    "clear to make room."
)
ACTION = re.compile(r"(\d{1,4})(?:([df])(\d{1,7}(?:-\d{1,7})*))?")
WHOLE = re.compile(r"([^~]*)(?:~([^~]+))?")


@dataclass(frozen=True)
class Action:
    """Tokens appended to a node, all sampled or all forced; without tokens, a jump to the node."""

    parent: int
    forced: bool = False
    tokens: tuple[int, ...] = ()

    def __str__(self) -> str:
        if not self.tokens:
            return str(self.parent)
        return f"{self.parent}{'f' if self.forced else 'd'}{'-'.join(map(str, self.tokens))}"


@dataclass(frozen=True)
class BranchNode:
    """One token of a branch; `forced` where the reader chose it."""

    parent: int
    token: int
    forced: bool


@dataclass(frozen=True)
class Branches:
    """The first `done` actions are in effect, the others are undone."""

    actions: tuple[Action, ...] = ()
    done: int = 0

    @property
    def at(self) -> int:
        """The current node, to which the last action led."""
        last = self.actions[self.done - 1] if self.done else Action(0)
        return len(self.nodes) - 1 if last.tokens else last.parent

    @cached_property
    def nodes(self) -> tuple[BranchNode, ...]:
        """All nodes; the first is the root, which is no token."""
        nodes = [BranchNode(-1, -1, False)]
        for action in self.actions[: self.done]:
            parent = action.parent
            for token in action.tokens:
                nodes.append(BranchNode(parent, token, action.forced))
                parent = len(nodes) - 1
        return tuple(nodes)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """The number of tokens on the way to each node."""
        depths = [0]
        for node in self.nodes[1:]:
            depths.append(depths[node.parent] + 1)
        return tuple(depths)

    @cached_property
    def children(self) -> tuple[dict[int, int], ...]:
        """For each node, the nodes after it by their tokens."""
        children = tuple(dict[int, int]() for _ in self.nodes)
        for place, node in enumerate(self.nodes[1:], 1):
            children[node.parent][node.token] = place
        return children

    @property
    def room(self) -> int:
        return MAX_NODES + 1 - len(self.nodes)

    @property
    def appended(self) -> "Branches":
        """The same nodes, without jumps and undone actions."""
        actions = tuple(action for action in self.actions[: self.done] if action.tokens)
        return Branches(actions, len(actions))

    @property
    def before(self) -> "Branches":
        return Branches(self.actions[: self.done - 1], self.done - 1)

    def nodes_to(self, node: int) -> list[int]:
        nodes, ancestors = self.nodes, list[int]()
        while node > 0:
            ancestors.append(node)
            node = nodes[node].parent
        return ancestors[::-1]

    @property
    def line(self) -> list[int]:
        """The nodes of the branch that is shown, from its first token to its last.

        It leads to the current node, and from there on to the child that was appended last.
        """
        line, last = self.nodes_to(self.at), self.at
        while self.children[last]:
            last = max(self.children[last].values())
            line.append(last)
        return line

    def path(self, node: int | None = None) -> tuple[int, ...]:
        """The tokens up to a node, by default the current one."""
        way = self.nodes_to(self.at if node is None else node)
        return tuple(self.nodes[place].token for place in way)

    def leaves(self) -> list[int]:
        return [place for place, behind in enumerate(self.children) if place and not behind]

    def go_to(self, node: int) -> "Branches":
        """Jump to a node, as an action; undone actions can still be redone."""
        if node == self.at or not 0 <= node < len(self.nodes):
            return self
        actions, done = list(self.actions), self.done
        ways = [at for at, action in enumerate(actions) if not action.tokens]
        if len(ways) == MAX_NODES:  # forget the oldest jump, or the one that is redone last
            forgotten = ways[0] if ways[0] < done else ways[-1]
            del actions[forgotten]
            done -= forgotten < done
        return Branches((*actions[:done], Action(node), *actions[done:]), done + 1)

    def follow(self, tokens: Sequence[int], behind: int) -> tuple[int, list[int]]:
        """The node that the existing branches lead to, and the tokens that are left."""
        at, left = behind, list(tokens)
        while left and left[0] in self.children[at]:
            at = self.children[at][left.pop(0)]
        return at, left

    def fitting(self, tokens: Sequence[int], behind: int) -> int:
        """How many of these tokens still fit after the node `behind`."""
        _, left = self.follow(tokens, behind)
        return len(tokens) - max(0, len(left) - self.room)

    def append(
        self, tokens: Sequence[int], *, forced: bool, behind: int | None = None
    ) -> "Branches":
        """Append tokens to the current node, or to `behind`; existing nodes are reused.

        ValueError where not all of them fit.
        """
        at, left = self.follow(tokens, self.at if behind is None else behind)
        if len(left) > self.room:
            raise ValueError(NO_ROOM.format(room=self.room))
        if not left:
            return self.go_to(at)
        actions = (*self.actions[: self.done], Action(at, forced, tuple(left)))
        return Branches(actions, len(actions))

    def undo(self) -> "Branches":
        return Branches(self.actions, max(0, self.done - 1))

    def redo(self) -> "Branches":
        return Branches(self.actions, min(len(self.actions), self.done + 1))

    @property
    def in_effect(self) -> str:
        """The actions in effect, as they are in the address."""
        return ".".join(map(str, self.actions[: self.done]))

    def __str__(self) -> str:
        """The branches in the address; empty without an action."""
        undone = ".".join(map(str, self.actions[self.done :]))
        return f"{self.in_effect}{f'~{undone}' if undone else ''}"


def parse_branches(
    text: str, vocab_size: int, ends: Collection[int], room: int
) -> "Branches | None":
    """The branches in an address; None where it cannot be read or does not fit.

    Token IDs are below `vocab_size`, at most `room` in a branch; nothing follows one of `ends`.
    """
    whole = WHOLE.fullmatch(text)
    if whole is None:
        return None
    applied, undone = (_parse_actions(part) for part in (whole[1], whole[2] or ""))
    if applied is None or undone is None:
        return None
    branches = Branches((*applied, *undone), len(applied) + len(undone))
    count, nodes = 1, branches.nodes
    for action in branches.actions:
        if action.parent >= count:
            return None
        count += len(action.tokens)
    for node in nodes[1:]:
        if node.token >= vocab_size or (node.parent and nodes[node.parent].token in ends):
            return None
    twice = len({(node.parent, node.token) for node in nodes}) < len(nodes)
    jumps = sum(not action.tokens for action in branches.actions)
    if twice or max(branches.depths) > room or max(len(nodes) - 1, jumps) > MAX_NODES:
        return None
    return Branches(branches.actions, len(applied))


def _parse_actions(text: str) -> tuple[Action, ...] | None:
    if not text:
        return ()
    actions = list[Action]()
    for part in text.split("."):
        match = ACTION.fullmatch(part)
        if match is None:
            return None
        tokens = tuple(map(int, match[3].split("-"))) if match[3] else ()
        actions.append(Action(int(match[1]), match[2] == "f", tokens))
    return tuple(actions)
