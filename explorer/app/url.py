"""What an address asks for: its whole numbers, and in one sentence each what it asks in vain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from explorer.catalog.attention_parts import Part
from explorer.catalog.available_models import ModelEntry

MOST_DIGITS = 9
"""No place and no share is longer; Python refuses to read thousands of digits."""


def whole(text: object, below: int = 10**MOST_DIGITS) -> int | None:
    """The whole number from 0 that this is, where it is one and below `below`."""
    digits = str(text)
    is_one = digits.isdecimal() and len(digits) <= MOST_DIGITS and int(digits) < below
    return int(digits) if is_one else None


def cut(length: int, limit: int, whose: str = "Your text") -> str:
    """That only the beginning of a text is kept."""
    return f"{whose} had {length:,} characters; the first {limit:,} are kept."


def text_notes(asked: Mapping[str, str], limit: int) -> list[str]:
    length = len(asked.get("text", ""))
    return [cut(length, limit, "The text in the address")] if length > limit else []


def model_notes(
    asked: Mapping[str, str], names: Iterable[str], damaged: Iterable[ModelEntry], shown: str
) -> list[str]:
    """`damaged` are the models that stand on the shelf and cannot be opened."""
    name = asked.get("model")
    if name is None or name in names:
        return []
    for entry in damaged:
        if entry.name == name:
            return [f"The model {name} cannot be opened ({entry.fault}); showing {shown}."]
    return [f"There is no model “{name[:40]}” here; showing {shown}."]


def gone(name: str, shown: str) -> str:
    """That the model on screen is no longer there."""
    return f"The model {name[:60]} is no longer there; showing {shown}."


def no_model_in(place: str) -> str:
    """That a place named at the start of the app holds no model."""
    return (
        f"EXPLORER_MODELS names {place[-60:]}, where there is no model: it takes a folder with a "
        "config.json, or a folder of such folders."
    )


def look_notes(
    asked: Mapping[str, str], parts: Iterable[Part], first: tuple[str, int, int]
) -> list[str]:
    """`first` is the part, layer and head that are shown where nothing else is asked for."""
    named = {part.title: part for part in parts}
    part = next(each for each in named.values() if each.name == first[0])
    notes, title = [], asked.get("part")
    if title is not None and title not in named:
        notes.append(f"This model has no attention “{title[:40]}”; showing {part.title}.")
    part = named.get(title or "", part)
    places = (
        ("layer", part.layers, min(first[1], part.layers - 1)),
        ("head", part.heads, first[2]),
    )
    for key, count, shown in places:
        number = asked.get(key)
        if number is not None and number not in map(str, range(count)):
            text = f"{key.capitalize()} “{number[:20]}” does not exist in this model"
            notes.append(f"{text}; showing {key} {shown}.")
    return notes
