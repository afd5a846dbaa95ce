"""Edits as they stand in a link: written, and read again.

For example `1.2~h.d.0.3.z~k.d.a.4`: the version of this
language, how many of the edits are made (the later ones were undone), then one edit
after another, each a letter and its fields. Only what this module would write itself is
taken back; everything else is dropped and said.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from explorer.interventions.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    Edit,
    HideKey,
    History,
    MaskCell,
    Patch,
    PresetMask,
    ReplaceToken,
)

VERSION = "1"
LONGEST = 1_500
"""Characters of the edits in an address."""
MOST = 60
LONGEST_TEXT = 300
"""Characters of a sentence that is patched from."""

PART_LETTERS = {"encoder.self_attn": "e", "decoder.self_attn": "d", "decoder.cross_attn": "c"}
PRESETS = {
    "none": "n",
    "causal": "c",
    "padding": "f",
    "window": "s",
    "prefix": "p",
    "blocks": "b",
}
TO = {"zero": "z", "mean": "m"}


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
    "word": (_packed, lambda text: _unpacked(text) if text else ""),
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


def has_room_for(history: History, edit: Edit) -> bool:
    """Whether an address can hold one more."""
    more = history.add(edit)
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
