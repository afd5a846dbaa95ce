"""Interventions as text in an address, for example `1.2~h.d.0.3.z~k.d.a.4`.

The text has the version of this format, the number of active interventions (the later ones were
undone), and each intervention as a letter and its fields. Whatever this module could not have
written is dropped with a message.
"""

import base64
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from explorer.interventions import edits
from explorer.interventions.edits import EditHistory, Intervention

EDITS_VERSION = "1"
MAX_EDITS_CHARACTERS = 1_500
"""Characters of all interventions in an address."""
MAX_EDITS = 60
MAX_PATCH_TEXT = 300
"""Characters of a sentence that is patched from."""
MOST_MIXED = 3
"""Programs that one head is replaced by."""
MAX_STRENGTH = 100.0
"""The largest factor of a direction that is added."""

PART_LETTERS = {"encoder.self_attn": "e", "decoder.self_attn": "d", "decoder.cross_attn": "c"}
PRESET_LETTERS = {
    "none": "n",
    "causal": "c",
    "padding": "f",
    "window": "s",
    "prefix": "p",
    "blocks": "b",
}
TO_LETTERS = {"zero": "z", "mean": "m"}
KINDS: dict[str, type[Any]] = {
    "h": edits.AblateHead,
    "a": edits.AblateAttention,
    "f": edits.AblateMlp,
    "n": edits.AblateNeuron,
    "x": edits.CutEdge,
    "m": edits.PresetMask,
    "c": edits.MaskCell,
    "k": edits.HideKey,
    "t": edits.ReplaceToken,
    "p": edits.Patch,
    "s": edits.Steer,
    "r": edits.ReplaceByProgram,
}
KIND_LETTERS = {kind: letter for letter, kind in KINDS.items()}
Codec = tuple[Callable[[Any], str], Callable[[str], Any]]


def _read_number(text: str) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]{0,6}", text):
        raise ValueError(text)
    return int(text)


def _one_of(letters: dict[str, str]) -> Codec:
    return letters.__getitem__, {letter: name for name, letter in letters.items()}.__getitem__


def _pack(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _unpack(text: str, longest: int = MAX_PATCH_TEXT) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise ValueError(text)
    plain = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    if len(plain) > longest:
        raise ValueError(text)
    return plain


def _read_strength(text: str) -> float:
    """A dot would end the field, so it is written as an underscore."""
    if not re.fullmatch(r"-?[0-9]+_[0-9]+(e-[0-9]+)?|-?[0-9]+e-[0-9]+", text):
        raise ValueError(text)
    strength = float(text.replace("_", "."))
    if abs(strength) > MAX_STRENGTH:
        raise ValueError(text)
    return strength


def _read_mixture(text: str) -> tuple[tuple[str, float], ...]:
    """Each program behind its share: `0.83 first|0.17 self`."""
    pairs = [one.partition(" ") for one in _unpack(text, MAX_EDITS_CHARACTERS).split("|")]
    mixture = tuple((program, float(share)) for share, _, program in pairs)
    plain = all(re.fullmatch(r"[0-9.]{1,8}", share) for share, _, _ in pairs)
    if len(mixture) > MOST_MIXED or not plain or abs(sum(of for _, of in mixture) - 1) > 0.01:
        raise ValueError(text)
    return mixture


NUMBER: Codec = (str, _read_number)
NUMBER_OR_ALL: Codec = (
    lambda number: "a" if number is None else str(number),
    lambda text: None if text == "a" else _read_number(text),
)
CODECS: dict[str, Codec] = {
    "part": _one_of(PART_LETTERS),
    "layer": NUMBER_OR_ALL,
    "head": NUMBER_OR_ALL,
    "to": _one_of(TO_LETTERS),
    "preset": _one_of(PRESET_LETTERS),
    "allowed": (lambda allowed: str(int(allowed)), lambda text: {"0": False, "1": True}[text]),
    "text": (_pack, _unpack),
    "word": (_pack, lambda text: _unpack(text) if text else ""),
    "strength": (lambda number: repr(float(number)).replace(".", "_"), _read_strength),
    "mixture": (
        lambda mixture: _pack("|".join(f"{share:g} {program}" for program, share in mixture)),
        _read_mixture,
    ),
    "texts": (
        lambda texts: ".".join(map(_pack, texts)),
        lambda text: tuple(_unpack(part, MAX_EDITS_CHARACTERS) for part in text.split(".")),
    ),
}
"""How a field is written and read; other fields are numbers."""


OPTIONAL = "source"  # a last field, which is not written where it is None


def edit_to_text(edit: Intervention) -> str:
    present = [f for f in fields(edit) if f.name != OPTIONAL or getattr(edit, f.name) is not None]
    values = (CODECS.get(f.name, NUMBER)[0](getattr(edit, f.name)) for f in present)
    return ".".join((KIND_LETTERS[type(edit)], *values))


def edit_from_text(text: str) -> Intervention:
    """The intervention of a text; ValueError for anything that `edit_to_text` does not write."""
    letter, _, rest = text.partition(".")
    try:
        kind = KINDS[letter]
        present = fields(kind)
        if present[-1].name == OPTIONAL and rest.count(".") < len(present) - 1:
            present = present[:-1]
        texts = rest.split(".", len(present) - 1)  # the last field may have dots
        values = [
            CODECS.get(f.name, NUMBER)[1](word) for f, word in zip(present, texts, strict=True)
        ]
    except (KeyError, UnicodeDecodeError) as error:
        raise ValueError(text) from error
    for field, value in zip(present, values, strict=True):
        if value is None and "None" not in str(field.type):
            raise ValueError(text)
    edit: Intervention = kind(*values)
    if edit_to_text(edit) != text:
        raise ValueError(text)
    return edit


def has_room_for(history: EditHistory, edit: Intervention) -> bool:
    """Whether an address has room for one more."""
    more = history.add(edit)
    return len(more.edits) <= MAX_EDITS and len(to_address(more)) <= MAX_EDITS_CHARACTERS


def to_address(history: EditHistory) -> str:
    """The whole history as text; empty if it has no interventions."""
    if not history.edits:
        return ""
    return "~".join((f"{EDITS_VERSION}.{history.done}", *map(edit_to_text, history.edits)))


def from_address(text: str) -> tuple[EditHistory, tuple[str, ...]]:
    """The history in an address, and a sentence about each part that cannot be read."""
    if not text:
        return EditHistory(), ()
    if len(text) > MAX_EDITS_CHARACTERS:
        return EditHistory(), (
            f"The interventions in the address have {len(text):,} characters; at most "
            f"{MAX_EDITS_CHARACTERS:,} are read, so none was applied.",
        )
    head, *rest = text.split("~")
    version, _, count = head.partition(".")
    try:
        if version != EDITS_VERSION or len(rest) > MAX_EDITS:
            raise ValueError(head)
        done = min(_read_number(count), len(rest))
    except ValueError:
        return EditHistory(), (
            f"“{text[:40]}” in the address is not a list of interventions that this version "
            "reads, so none was applied.",
        )
    edits_in_text: list[Intervention] = []
    notes: list[str] = []
    active = done
    for index, part in enumerate(rest):
        try:
            edits_in_text.append(edit_from_text(part))
        except ValueError:
            notes.append(f"“{part[:40]}” in the address is not an intervention and was dropped.")
            active -= index < done
    return EditHistory(tuple(edits_in_text), active), tuple(notes)
