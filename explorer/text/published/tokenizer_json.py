"""Checks a tokenizer.json before the library reads it, and changes some of it.

It may declare any part; how many, how long and how deep is bounded. Only the child reads it, so
these bounds exist for a clear message: a file that passes them and still breaks the library ends
only the child.

The changes: no dropout, no truncation, and no typed special token. The library can be told to
ignore special tokens in a text, but a model with `<s>` in its own vocabulary still finds it
there; such an entry is renamed to something that nobody can type.
"""

import secrets
from collections.abc import Iterable
from typing import Any

from explorer.text.checked_text import TextError
from explorer.text.published.tokenizer_families import Roles

MOST_ENTRIES = 1_000_000
LARGEST_ID = 4_000_000
LONGEST_ENTRY = 10_000
MOST_ADDED = 50_000
MOST_MERGES = 4_000_000
MOST_PARTS, DEEPEST = 20_000, 24
LONGEST_PATTERN = 4_000
LONGEST_CHARSMAP = 8_000_000
PIPELINE = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
BYTE_TOKENS = frozenset(f"<0x{byte:02X}>" for byte in range(256))
"""Byte fallback finds them by these names: they stand for bytes of a text, special or not."""
MODELS = ("BPE", "Unigram", "WordPiece", "WordLevel")


def check_bounds(stored: dict[str, Any]) -> None:
    """TextError, in half a sentence, unless the whole file is within bounds."""
    model = stored.get("model")
    if not isinstance(model, dict):
        raise TextError("it has no model.")
    _check_model(model)
    _check_added(stored.get("added_tokens"))
    for name in PIPELINE:
        _check_part(name, stored.get(name))


def model_type(model: dict[str, Any]) -> str:
    """The kind of model; in older files it follows from the other fields."""
    named = model.get("type")
    if named is None:
        if isinstance(model.get("vocab"), list):
            return "Unigram"
        if "merges" in model:
            return "BPE"
        return "WordPiece" if "continuing_subword_prefix" in model else "WordLevel"
    return named if isinstance(named, str) else ""


def _check_model(model: dict[str, Any]) -> None:
    kind = model_type(model)
    if kind not in MODELS:
        raise TextError("it is none of BPE, Unigram, WordPiece and WordLevel.")
    vocabulary = model.get("vocab")
    if kind == "Unigram":
        _check_scored(vocabulary)
    elif not isinstance(vocabulary, dict):
        raise TextError("it has no vocabulary.")
    else:
        _check_texts(vocabulary)
        _check_ids(vocabulary.values())
    if kind == "BPE":
        _check_merges(model.get("merges"))
    for name, value in model.items():
        if name not in ("vocab", "merges") and isinstance(value, (list, dict, str)):
            _check_part("model", value)


def _check_scored(vocabulary: Any) -> None:
    """A list of pieces and scores; the ID of a piece is its place."""
    if not isinstance(vocabulary, list):
        raise TextError("it has no vocabulary.")
    if not all(
        isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], (int, float))
        for entry in vocabulary
    ):
        raise TextError("its vocabulary is not a list of pieces and scores.")
    pieces = [piece for piece, _ in vocabulary]
    _check_texts(pieces)
    if len(set(pieces)) != len(pieces):
        raise TextError("two tokens of its vocabulary have the same text.")


def _check_texts(entries: Iterable[Any]) -> None:
    texts = list(entries)
    if not 0 < len(texts) <= MOST_ENTRIES:
        raise TextError(f"its vocabulary has {len(texts):,} tokens, not 1 to {MOST_ENTRIES:,}.")
    if not all(isinstance(text, str) and len(text) <= LONGEST_ENTRY for text in texts):
        raise TextError("a token of its vocabulary is not a short text.")


def _check_ids(ids: Iterable[Any]) -> None:
    numbers = list(ids)
    if not all(type(token_id) is int and 0 <= token_id < LARGEST_ID for token_id in numbers):
        raise TextError("a token of its vocabulary has no usable ID.")
    if len(set(numbers)) != len(numbers):
        raise TextError("two tokens of its vocabulary have the same ID.")


def _check_merges(merges: Any) -> None:
    if not isinstance(merges, list) or len(merges) > MOST_MERGES:
        raise TextError("its merges are not a list that can be read.")
    if not all(
        isinstance(merge, str)
        or (isinstance(merge, list) and len(merge) == 2 and all(isinstance(t, str) for t in merge))
        for merge in merges
    ):
        raise TextError("one of its merges is not a pair of tokens.")


def _check_added(added: Any) -> None:
    if added is None:
        return
    if not isinstance(added, list) or len(added) > MOST_ADDED:
        raise TextError(f"its added tokens are not a list of at most {MOST_ADDED:,}.")
    for token in added:
        if not isinstance(token, dict) or not isinstance(token.get("content"), str):
            raise TextError("one of its added tokens has no text.")
        if len(token["content"]) > LONGEST_ENTRY:
            raise TextError("one of its added tokens is not a short text.")
    _check_ids([token.get("id") for token in added])


def _check_part(name: str, part: Any) -> None:
    """Check that a part, with everything inside it, has few values and short texts."""
    waiting, count = [(part, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if count > MOST_PARTS or depth > DEEPEST:
            raise TextError(f"its {name} has too many parts.")
        if isinstance(value, dict):
            for key, inner in value.items():
                _check_text(name, key, key)
                if isinstance(inner, str):
                    _check_text(name, key, inner)
                else:
                    waiting.append((inner, depth + 1))
        elif isinstance(value, list):
            waiting += [(inner, depth + 1) for inner in value]
        elif isinstance(value, str):
            _check_text(name, "", value)


def _check_text(name: str, key: str, text: str) -> None:
    if len(text) > (LONGEST_CHARSMAP if key == "precompiled_charsmap" else LONGEST_PATTERN):
        raise TextError(f"its {name} holds a text of {len(text):,} characters.")


def prepare_json(
    stored: dict[str, Any], roles: Roles, more: frozenset[str]
) -> tuple[dict[str, int], dict[str, str], set[str]]:
    """Change a checked file in place, since it may be large; texts in `more` are special too.

    Returns the ID of each added token, which may be another in the library; the special tokens
    whose entry in the vocabulary was renamed, by their new text; and all special tokens.
    """
    model = stored["model"]
    stored["padding"] = stored["truncation"] = None
    stored.setdefault("version", "1.0")
    _keep_spaces(stored.get("post_processor"))
    if model_type(model) == "BPE":
        model["dropout"] = None
    added: list[dict[str, Any]] = stored.get("added_tokens") or []
    mask, unknown = roles.get("mask"), roles.get("unk")
    played = {text for role, text in roles.items() if role != "unk"}
    special = {token["content"] for token in added if token.get("special") is True} | played | more
    if unknown is not None and unknown not in played:
        special.discard(unknown)
    special.discard(mask or "")
    if model.get("byte_fallback") is True:
        special -= BYTE_TOKENS
    numbers = {token["content"]: token["id"] for token in added}
    renamed = _rename(model, special, unknown)
    if unknown is not None:  # typed, it is plain text too
        special = special | {unknown}
    listed = [{**_USUAL_FLAGS, **token, "special": token["content"] in special} for token in added]
    gone = set(renamed.values())
    listed.sort(key=lambda token: token["content"] in gone)  # these get new IDs in the library
    stored["added_tokens"] = listed
    return numbers, renamed, special


def _keep_spaces(part: Any) -> None:
    """Keep the space of a token in its span, since its label shows the space."""
    if isinstance(part, dict):
        if "trim_offsets" in part:
            part["trim_offsets"] = False
        for inner in part.get("processors") or []:
            _keep_spaces(inner)


_USUAL_FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def _rename(model: dict[str, Any], special: set[str], unknown: str | None) -> dict[str, str]:
    """Rename the special tokens to entries that no text contains: the old texts by the new ones.

    Gaps in the IDs get such entries too, so that an added token does not get the ID of another.
    """
    unreachable = f"\U0010fffd{secrets.token_hex(8)}"
    vocabulary, renamed = model["vocab"], {}
    if isinstance(vocabulary, list):
        for index, entry in enumerate(vocabulary):
            if entry[0] in special or (entry[0] == unknown and index == model.get("unk_id")):
                renamed[f"{unreachable}{index}"] = entry[0]
                entry[0] = f"{unreachable}{index}"
        return renamed
    for text in special & vocabulary.keys() - {model.get("unk_token")}:
        token_id = vocabulary.pop(text)
        renamed[f"{unreachable}{token_id}"] = text
        vocabulary[f"{unreachable}{token_id}"] = token_id
    if renamed and model.get("merges"):
        gone = set(renamed.values())
        model["merges"] = [merge for merge in model["merges"] if not _uses(merge, gone)]
    used = set(vocabulary.values())
    if len(used) <= max(used) < 2 * len(used):
        gaps = set(range(max(used))) - used
        vocabulary |= {f"{unreachable}{token_id}": token_id for token_id in gaps}
    return renamed


def _uses(merge: Any, gone: set[str]) -> bool:
    left, right = merge if isinstance(merge, list) else (*merge.split(" ", 1), "")[:2]
    return left in gone or right in gone or left + right in gone
