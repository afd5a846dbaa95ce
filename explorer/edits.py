"""What a reader changes in a pass: plain frozen edits, their history, and their place in a link.

A link holds them as text, for example `1.2~h.d.0.3.z~k.d.a.4`: the version of this
language, how many of the edits are made (the later ones were undone), then one edit
after another, each a letter and its fields. Only what this module would write itself is
taken back; everything else is dropped and said.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

VERSION = "1"
LONGEST = 1_500
"""Characters of the edits in an address."""
MOST = 60
LONGEST_TEXT = 300
"""Characters of a sentence that is patched from."""

PART_LETTERS = {"encoder.self_attn": "e", "decoder.self_attn": "d", "decoder.cross_attn": "c"}
PRESETS = {"none": "n", "causal": "c", "window": "s", "prefix": "p", "blocks": "b"}
TO = {"zero": "z", "mean": "m"}


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
    """Another token in place of one that is read; `part` says by which stack."""

    part: str
    position: int
    token: int


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
LETTERS: dict[str, type[Any]] = {
    "h": AblateHead,
    "a": AblateAttention,
    "f": AblateMlp,
    "x": CutEdge,
    "m": PresetMask,
    "c": MaskCell,
    "k": HideKey,
    "t": ReplaceToken,
    "p": Patch,
}
KINDS = {kind: letter for letter, kind in LETTERS.items()}


def _number(text: str) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]{0,6}", text):
        raise ValueError(text)
    return int(text)


def _one_of(names: dict[str, str]) -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    back = {letter: name for name, letter in names.items()}
    return names.__getitem__, back.__getitem__


def _packed(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _unpacked(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise ValueError(text)
    found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    if len(found) > LONGEST_TEXT:
        raise ValueError(text)
    return found


NUMBER: tuple[Callable[[Any], str], Callable[[str], Any]] = (str, _number)
OR_ALL: tuple[Callable[[Any], str], Callable[[str], Any]] = (
    lambda number: "a" if number is None else str(number),
    lambda text: None if text == "a" else _number(text),
)
WAYS: dict[str, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    "part": _one_of(PART_LETTERS),
    "layer": OR_ALL,
    "head": OR_ALL,
    "to": _one_of(TO),
    "preset": _one_of(PRESETS),
    "allowed": (lambda allowed: str(int(allowed)), lambda text: {"0": False, "1": True}[text]),
    "text": (_packed, _unpacked),
}
"""How a field is written and read; what is not named here is a number."""


def written(edit: Edit) -> str:
    """One edit as it stands in an address."""
    values = (WAYS.get(f.name, NUMBER)[0](getattr(edit, f.name)) for f in fields(edit))
    return ".".join((KINDS[type(edit)], *values))


def read_one(text: str) -> Edit:
    """One edit again; ValueError for anything that `written` does not write."""
    letter, *values = text.split(".")
    try:
        kind = LETTERS[letter]
        names = [(f.name, f.type) for f in fields(kind)]
        found = {
            name: WAYS.get(name, NUMBER)[1](value)
            for (name, _), value in zip(names, values, strict=True)
        }
    except (KeyError, UnicodeDecodeError) as error:
        raise ValueError(text) from error
    if any(found[name] is None and "None" not in str(of) for name, of in names):
        raise ValueError(text)
    edit: Edit = kind(**found)
    if written(edit) != text:
        raise ValueError(text)
    return edit


@dataclass(frozen=True)
class History:
    """All edits in their order; the first `done` of them are made, the rest were undone."""

    edits: tuple[Edit, ...] = ()
    done: int = 0

    @property
    def made(self) -> tuple[Edit, ...]:
        return self.edits[: self.done]

    def add(self, edit: Edit) -> History:
        """One more; what was undone is forgotten, and so is an earlier edit of the same cell."""
        made = (*self.without_cell(edit).made, edit)
        return History(made, len(made))

    def without_cell(self, edit: Edit) -> History:
        """The edits that are made, less those of the same cell of the same mask."""
        made = self.made
        if isinstance(edit, MaskCell):
            same = [replace(edit, allowed=may) for may in (False, True)]
            made = tuple(each for each in made if each not in same)
        return History(made, len(made))

    def with_only(self, fitting: tuple[Edit, ...]) -> History:
        """Of what is made only what fits; what was undone stays, to be made again."""
        made = tuple(each for each in self.made if each in fitting)
        return History((*made, *self.edits[self.done :]), len(made))

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

    def has_room_for(self, edit: Edit) -> bool:
        """Whether an address can hold one more."""
        more = self.add(edit)
        return len(more.edits) <= MOST and len(to_address(more)) <= LONGEST


def to_address(history: History) -> str:
    """All of it as text; nothing where nothing was changed."""
    if not history.edits:
        return ""
    return "~".join((f"{VERSION}.{history.done}", *map(written, history.edits)))


def from_address(text: str) -> tuple[History, tuple[str, ...]]:
    """The edits of an address, and what of it could not be taken, in sentences."""
    if not text:
        return History(), ()
    if len(text) > LONGEST:
        return History(), (
            f"The edits in the address have {len(text):,} characters; at most {LONGEST:,} are "
            "read, so none was made.",
        )
    head, *rest = text.split("~")
    version, _, count = head.partition(".")
    try:
        if version != VERSION or len(rest) > MOST:
            raise ValueError(head)
        done = _number(count)
    except ValueError:
        return History(), (
            f"“{text[:40]}” in the address is not a list of edits that this version reads, so "
            "none was made.",
        )
    edits: list[Edit] = []
    notes: list[str] = []
    kept_done = min(done, len(rest))
    for place, each in enumerate(rest):
        try:
            edits.append(read_one(each))
        except ValueError:
            notes.append(f"“{each[:40]}” in the address is no edit; it was dropped.")
            kept_done -= place < min(done, len(rest))
    return History(tuple(edits), kept_done), tuple(notes)
