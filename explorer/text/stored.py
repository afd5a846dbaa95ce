"""What a `tokenizer.json` of this app may contain, checked before the library reads it.

The library trusts its files: one of a few hundred bytes can ask for endless
padding and bring the whole process down. So a file must describe one of the
three kinds built here, part by part, and nothing else.
"""

import json
from typing import Any

from explorer.text.checked_text import TextError
from explorer.text.labels import byte_alphabet
from explorer.text.special import SPECIALS, UNKNOWN

MAX_FILE_CHARACTERS = 20_000_000

_NORMALIZERS: list[Any] = [None, {"type": "Lowercase"}]
_CHARACTERS: dict[str, Any] = {
    "type": "Split",
    "pattern": {"Regex": r"[\s\S]"},
    "behavior": "Isolated",
    "invert": False,
}
_BYTES: dict[str, Any] = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": False,
    "use_regex": True,
}
_BPE_OPTIONS = {
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": False,
}
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")
_PARTS: dict[str, list[tuple[Any, Any]]] = {
    "WordLevel": [(_CHARACTERS, {"type": "Fuse"}), ({"type": "Whitespace"}, None)],
    "BPE": [(_BYTES, {"type": "ByteLevel"})],
}


def check_stored(text: str) -> None:
    """TextError, in one sentence, unless the file describes a tokenizer of this app."""
    if len(text) > MAX_FILE_CHARACTERS:
        raise TextError(f"The tokenizer file is larger than {MAX_FILE_CHARACTERS:,} characters.")
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TextError("The tokenizer file is not readable JSON.") from error
    fault = _fault(stored)
    if fault:
        raise TextError(f"The tokenizer file cannot be used: {fault}.")


def _fault(stored: Any) -> str | None:
    if not isinstance(stored, dict) or not isinstance(stored.get("model"), dict):
        return "it has no model"
    for part in ("padding", "truncation"):
        if stored.get(part) is not None:
            return f"it asks for {part}, which is the model's business"
    if stored.get("normalizer") not in _NORMALIZERS:
        return "it changes the text in a way this app does not know"
    return (
        _kind_fault(stored)
        or _vocabulary_fault(stored["model"])
        or _special_fault(stored, stored["model"]["vocab"])
    )


def _kind_fault(stored: dict[str, Any]) -> str | None:
    model = stored["model"]
    known = _PARTS.get(str(model.get("type")))
    if known is None:
        return "only character, word and byte-level BPE tokenizers are known"
    if model["type"] == "BPE" and any(model.get(k) != v for k, v in _BPE_OPTIONS.items()):
        return "its BPE has options this app does not know"
    if not any(
        stored.get("pre_tokenizer") == splits
        and (stored.get("decoder") or {}).get("type") == (joins or {}).get("type")
        for splits, joins in known
    ):
        return "it splits or joins text in a way this app does not know"
    return None


def _vocabulary_fault(model: dict[str, Any]) -> str | None:
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict) or not vocabulary:
        return "it has no vocabulary"
    ids = list(vocabulary.values())
    if not all(type(index) is int for index in ids) or sorted(ids) != list(range(len(ids))):
        return "its vocabulary does not number its tokens from 0 on"
    if model["type"] == "WordLevel":
        known = model.get("unk_token") == UNKNOWN and UNKNOWN in vocabulary
        return None if known else "it has no unknown token"
    if any(not set(token) <= byte_alphabet().keys() for token in vocabulary):
        return "a token is not made of bytes"
    merges = model.get("merges")
    if not isinstance(merges, list):
        return "it has no merges"
    for merge in merges:
        if not (isinstance(merge, list) and len(merge) == 2 and all(map(_is_text, merge))):
            return "a merge is not a pair of tokens"
        if not {*merge, "".join(merge)} <= vocabulary.keys():
            return "a merge uses tokens outside the vocabulary"
    return None


def _special_fault(stored: dict[str, Any], vocabulary: dict[str, int]) -> str | None:
    """Special tokens must be ours, and placed in one of the three ways a model reads."""
    processor = stored.get("post_processor")
    if not isinstance(processor, dict) or processor.get("type") != "TemplateProcessing":
        return "it does not say which special tokens surround a text"
    templates = {json.dumps([_template_item(name) for name in reads]): reads for reads in SPECIALS}
    reads = templates.get(json.dumps(processor.get("single")))
    if reads is None:
        return "it surrounds a text in a way this app does not know"
    around = [name for name in reads if name != "$A"]
    if processor.get("special_tokens") != {
        name: {"id": name, "ids": [vocabulary.get(name)], "tokens": [name]} for name in around
    }:
        return "the special tokens around a text are not in the vocabulary"
    expected = [
        {"id": vocabulary.get(name), "content": name, "special": True}
        | dict.fromkeys(_FLAGS, False)
        for name in SPECIALS[reads]
    ]
    return None if stored.get("added_tokens") == expected else "its special tokens are unknown"


def _template_item(name: str) -> dict[str, Any]:
    if name == "$A":
        return {"Sequence": {"id": "A", "type_id": 0}}
    return {"SpecialToken": {"id": name, "type_id": 0}}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
