"""Makes a tokenizer.json fit for looking: nothing random, nothing cut, nothing typed special.

The library can be told to leave special tokens alone in a text, but a model that
holds `<s>` in its own vocabulary still finds it there. So such an entry is renamed
to something nobody can type; what it is called is remembered here.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from explorer.text.published.checks import type_of
from explorer.text.published.roles import Roles


@dataclass(frozen=True)
class Prepared:
    """The file as the library gets it; `renamed` is the number of each special token in it."""

    stored: dict[str, Any]
    renamed: dict[str, int]
    special: frozenset[str]


def prepare(stored: dict[str, Any], roles: Roles, more: frozenset[str]) -> Prepared:
    """`stored` was checked, and is changed in place: it may be large. `more` is special too."""
    model = stored["model"]
    stored["padding"] = stored["truncation"] = None
    stored.setdefault("version", "1.0")
    _keep_spaces(stored.get("post_processor"))
    if type_of(model) == "BPE":
        model["dropout"] = None
    added: list[dict[str, Any]] = stored.get("added_tokens") or []
    mask, unknown = roles.get("mask"), roles.get("unk")
    played = {text for role, text in roles.items() if role != "unk"}
    special = {token["content"] for token in added if token.get("special") is True} | played | more
    if unknown is not None and unknown not in played:
        special.discard(unknown)
    special.discard(mask or "")
    renamed = _rename(model, special)
    stored["added_tokens"] = [
        {**_FLAGS, **token, "special": token["content"] in special}
        for token in added
        if token["content"] not in renamed
    ]
    return Prepared(stored, renamed, frozenset(special))


def _keep_spaces(part: Any) -> None:
    """A token that is shown with its space has that space in its span."""
    if isinstance(part, dict):
        if "trim_offsets" in part:
            part["trim_offsets"] = False
        for inner in part.get("processors") or []:
            _keep_spaces(inner)


_FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def _rename(model: dict[str, Any], special: set[str]) -> dict[str, int]:
    """Takes the special tokens out of reach of any text."""
    unreachable = f"\U0010fffd{secrets.token_hex(8)}"
    vocabulary, renamed = model["vocab"], {}
    if isinstance(vocabulary, list):
        for index, entry in enumerate(vocabulary):
            if entry[0] in special and index != model.get("unk_id"):
                renamed[entry[0]] = index
                entry[0] = f"{unreachable}{index}"
        return renamed
    for text in special & vocabulary.keys() - {model.get("unk_token")}:
        number = renamed[text] = vocabulary.pop(text)
        vocabulary[f"{unreachable}{number}"] = number
    if renamed and model.get("merges"):
        model["merges"] = [merge for merge in model["merges"] if not _uses(merge, renamed)]
    return renamed


def _uses(merge: Any, renamed: dict[str, int]) -> bool:
    left, right = merge if isinstance(merge, list) else (*merge.split(" ", 1), "")[:2]
    return left in renamed or right in renamed or left + right in renamed
