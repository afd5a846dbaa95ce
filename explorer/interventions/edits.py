"""The interventions of a reader in a forward pass, as frozen plain data, and their history."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class AblateHead:
    """The output of one head becomes zero, or its mean over positions (`to` "mean")."""

    part: str
    layer: int
    head: int
    to: str = "zero"


@dataclass(frozen=True)
class AblateAttention:
    """The output of a layer's attention becomes zero, or its mean over positions."""

    part: str
    layer: int
    to: str = "zero"


@dataclass(frozen=True)
class AblateMlp:
    """The same for a layer's feed-forward; `part` is any attention of its stack."""

    part: str
    layer: int
    to: str = "zero"


@dataclass(frozen=True)
class AblateNeuron:
    """The same for one neuron of a layer's feed-forward."""

    part: str
    layer: int
    neuron: int
    to: str = "zero"


@dataclass(frozen=True)
class CutEdge:
    """One attention weight becomes zero, or its mean over queries; `head` None is every head."""

    part: str
    layer: int
    head: int | None
    query: int
    key: int
    to: str = "zero"


@dataclass(frozen=True)
class PresetMask:
    """Another mask, in one layer or (None) all; `n` is the size of a window, prefix or block."""

    part: str
    layer: int | None
    preset: str
    n: int = 1


@dataclass(frozen=True)
class MaskCell:
    """Whether one query may attend to one key."""

    part: str
    layer: int | None
    query: int
    key: int
    allowed: bool


@dataclass(frozen=True)
class HideKey:
    """No query may attend to one key."""

    part: str
    layer: int | None
    key: int


@dataclass(frozen=True)
class ReplaceToken:
    """Another input token at one position; `part` says of which stack.

    `word` is the label the token ID had where it was chosen: another model may have another
    token under the same ID. An empty one is not compared.
    """

    part: str
    position: int
    token: int
    word: str = ""


@dataclass(frozen=True)
class Patch:
    """Activation patching: at one position, the value that another text has there.

    The output of `head`, or (None) the residual stream after the layer. With a `source` it is the
    value at that position of the other text, which may then have another length.
    """

    part: str
    layer: int
    head: int | None
    position: int
    text: str
    source: int | None = None


@dataclass(frozen=True)
class Steer:
    """A direction times `strength`, added to the residual stream after a layer, everywhere.

    Without `head` the direction is the difference of two `texts`, the first minus the second, or
    the mean over several such pairs. With `head` it is what that head of the layer writes into
    the residual stream on one text.
    """

    part: str
    layer: int
    head: int | None
    strength: float
    texts: tuple[str, ...]


@dataclass(frozen=True)
class ReplaceByProgram:
    """The map of one head becomes a mixture of programs over tokens, each with its share."""

    part: str
    layer: int
    head: int
    mixture: tuple[tuple[str, float], ...]


Intervention = (
    AblateHead
    | AblateAttention
    | AblateMlp
    | AblateNeuron
    | CutEdge
    | PresetMask
    | MaskCell
    | HideKey
    | ReplaceToken
    | Patch
    | Steer
    | ReplaceByProgram
)

VALUE_FIELDS = tuple("to preset n allowed token word text source strength mixture".split())
"""Fields that say what the target becomes; the others say which target it is."""


def edit_target(edit: Intervention) -> tuple[object, ...]:
    """The target that it changes; of two interventions on one target only the later one counts."""
    which = (f.name for f in fields(edit) if f.name not in VALUE_FIELDS)
    return (type(edit), *(getattr(edit, name) for name in which))


@dataclass(frozen=True)
class EditHistory:
    """All interventions in order; the first `done` of them are active, the rest were undone."""

    edits: tuple[Intervention, ...] = ()
    done: int = 0

    @property
    def active(self) -> tuple[Intervention, ...]:
        return self.edits[: self.done]

    def add(self, edit: Intervention) -> EditHistory:
        """Add an intervention; drop those undone, and an earlier one on the same target."""
        active = (*self.without_target(edit).active, edit)
        return EditHistory(active, len(active))

    def without_target(self, edit: Intervention) -> EditHistory:
        """The active interventions on other targets."""
        active = tuple(old for old in self.active if edit_target(old) != edit_target(edit))
        return EditHistory(active, len(active))

    def undo(self) -> EditHistory:
        return EditHistory(self.edits, max(0, self.done - 1))

    def redo(self) -> EditHistory:
        return EditHistory(self.edits, min(len(self.edits), self.done + 1))

    def remove(self, index: int) -> EditHistory:
        left = (*self.edits[:index], *self.edits[index + 1 :])
        return EditHistory(left, self.done - (index < self.done))

    def clear(self) -> EditHistory:
        """Undo all, so that all can be redone."""
        return EditHistory(self.edits, 0)
