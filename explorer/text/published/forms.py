"""From the files of a folder to the engine that reads with them."""

from __future__ import annotations

from typing import Any

from explorer.text.published.child_files import Files, object_of
from explorer.text.published.engine import Engine
from explorer.text.published.fast_tokenizers import LibraryEngine
from explorer.text.published.legacy_forms import FREE_ENDS, byte_level, ends, word_pieces
from explorer.text.published.roles import Roles, added_of, roles_of, text_of, way_of


def open_engine(files: Files, family: str) -> Engine:
    """The engine for these files, which are whole for one form; TextError says why not."""
    settings = object_of(files, "tokenizer_config.json")
    roles_file = object_of(files, "special_tokens_map.json")
    way = way_of(family, settings)
    roles = roles_of(way, settings, roles_file)
    if not any(name in files for name in ("tokenizer.json", "vocab.txt", "merges.txt")):
        from explorer.text.published.pieces import piece_engine

        return piece_engine(files, way, settings, roles)
    if "tokenizer.json" in files:
        stored = _whole(files, way, settings, roles)
    elif "vocab.txt" in files:
        stored = word_pieces(files, way, settings, roles)
    else:
        stored = byte_level(files, way, settings, roles)
    return LibraryEngine(stored, roles, _more(files, settings, roles_file))


def _whole(files: Files, way: str, settings: dict[str, Any], roles: Roles) -> dict[str, Any]:
    """tokenizer.json says everything, but for the ends of a text that its settings may decide."""
    stored = object_of(files, "tokenizer.json")
    asked = any(isinstance(settings.get(f"add_{end}_token"), bool) for end in ("bos", "eos"))
    if asked and way in FREE_ENDS and isinstance(stored.get("model"), dict):
        numbers = stored["model"].get("vocab")
        known = dict(numbers) if isinstance(numbers, dict) else {}
        added = stored.get("added_tokens")
        for token in added if isinstance(added, list) else []:
            if isinstance(token, dict) and isinstance(token.get("content"), str):
                known[token["content"]] = token.get("id")
        around = ends(way, settings, roles, known)
        if around is not None or _adds(stored.get("post_processor")):
            stored["post_processor"] = around
    return stored


def _adds(processor: Any) -> bool:
    return isinstance(processor, dict) and processor.get("type") == "TemplateProcessing"


def _more(files: Files, settings: dict[str, Any], special: dict[str, Any]) -> frozenset[str]:
    """Special tokens without a role that the settings name."""
    found = {text for _, text, is_special in added_of(settings, {}) if is_special}
    for source in (settings, special):
        for name in ("additional_special_tokens", "extra_special_tokens"):
            listed = source.get(name)
            for token in listed if isinstance(listed, list) else []:
                found.add(text_of(token) or "")
    return frozenset(found - {""})
