"""What a reader changes in a pass: plain frozen edits, and their history."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class AblateHead:
    """One head says nothing (zero), or the same at every position (mean)."""

    part: str
    layer: int
    head: int
    to: str = "zero"


@dataclass(frozen=True)
class AblateAttention:
    """The attention of a layer says nothing, or the same at every position."""

    part: str
    layer: int
    to: str = "zero"


@dataclass(frozen=True)
class AblateMlp:
    """The same for the feed-forward of a layer; `part` names the stack it stands in."""

    part: str
    layer: int
    to: str = "zero"


@dataclass(frozen=True)
class CutEdge:
    """One query no longer gets anything from one key; `head` None is every head of the layer."""

    part: str
    layer: int
    head: int | None
    query: int
    key: int
    to: str = "zero"


@dataclass(frozen=True)
class PresetMask:
    """Another mask, for one layer or (None) all; `n` is the size of a window, prefix or block."""

    part: str
    layer: int | None
    preset: str
    n: int = 1


@dataclass(frozen=True)
class MaskCell:
    """One query may, or may not, look at one key."""

    part: str
    layer: int | None
    query: int
    key: int
    allowed: bool


@dataclass(frozen=True)
class HideKey:
    """Nobody may look at one key."""

    part: str
    layer: int | None
    key: int


@dataclass(frozen=True)
class ReplaceToken:
    """Another token in place of one that is read; `part` says by which stack.

    `word` is the label it had where it was chosen: under the number of a token another
    model has another word. An empty one is not compared.
    """

    part: str
    position: int
    token: int
    word: str = ""


@dataclass(frozen=True)
class Patch:
    """A value of another text's pass at one position.

    `head` names whose output; None is the stream after the layer.
    """

    part: str
    layer: int
    head: int | None
    position: int
    text: str


Edit = (
    AblateHead
    | AblateAttention
    | AblateMlp
    | CutEdge
    | PresetMask
    | MaskCell
    | HideKey
    | ReplaceToken
    | Patch
)


WHAT_BECOMES = ("to", "preset", "n", "allowed", "token", "word", "text")
"""Fields that say what becomes of a thing; the others say which thing it is."""


def subject(edit: Edit) -> tuple[object, ...]:
    """Which thing it changes: of two edits of the same thing only the later one counts."""
    which = (f.name for f in fields(edit) if f.name not in WHAT_BECOMES)
    return (type(edit), *(getattr(edit, name) for name in which))


@dataclass(frozen=True)
class History:
    """All edits in their order; the first `done` of them are made, the rest were undone."""

    edits: tuple[Edit, ...] = ()
    done: int = 0

    @property
    def made(self) -> tuple[Edit, ...]:
        return self.edits[: self.done]

    def add(self, edit: Edit) -> History:
        """One more; what was undone is forgotten, and so is an earlier edit of the same thing."""
        made = (*self.without_same(edit).made, edit)
        return History(made, len(made))

    def without_same(self, edit: Edit) -> History:
        """The edits that are made, less those of the same thing."""
        made = tuple(each for each in self.made if subject(each) != subject(edit))
        return History(made, len(made))

    def undo(self) -> History:
        return History(self.edits, max(0, self.done - 1))

    def redo(self) -> History:
        return History(self.edits, min(len(self.edits), self.done + 1))

    def without(self, place: int) -> History:
        """One of them was never made."""
        left = (*self.edits[:place], *self.edits[place + 1 :])
        return History(left, self.done - (place < self.done))

    def clear(self) -> History:
        """All are undone, so all can be made again."""
        return History(self.edits, 0)
