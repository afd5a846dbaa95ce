"""From the files of a folder to the engine that reads with them."""

from collections.abc import Mapping
from typing import Any

from explorer.text.checked_text import TextError
from explorer.text.published.child_wire import Engine
from explorer.text.published.library_engine import LibraryEngine
from explorer.text.published.roles import (
    Roles,
    added_entries,
    reading_of,
    special_roles,
    token_text,
)
from explorer.text.published.tokenizer_files import Files, file_lines, json_object


def open_engine(files: Files, family: str) -> Engine:
    """The engine for these files, which are complete for one form; TextError says why not."""
    settings = json_object(files, "tokenizer_config.json")
    roles_file = json_object(files, "special_tokens_map.json")
    way = reading_of(family, settings)
    roles = special_roles(way, settings, roles_file)
    if not any(name in files for name in ("tokenizer.json", "vocab.txt", "merges.txt")):
        from explorer.text.published.sentencepiece_engine import piece_engine

        return piece_engine(files, way, settings, roles)
    if "tokenizer.json" in files:
        stored = _whole(files, way, settings, roles)
    elif "vocab.txt" in files:
        stored = word_pieces(files, way, settings, roles)
    else:
        stored = byte_level(files, way, settings, roles)
    return LibraryEngine(stored, roles, _more(files, settings, roles_file))


def _whole(files: Files, way: str, settings: dict[str, Any], roles: Roles) -> dict[str, Any]:
    """tokenizer.json, with the start and end tokens that the settings may decide."""
    stored = json_object(files, "tokenizer.json")
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
    """Special tokens of the settings that have no role."""
    found = {text for _, text, is_special in added_entries(settings, {}) if is_special}
    for source in (settings, special):
        for name in ("additional_special_tokens", "extra_special_tokens"):
            listed = source.get(name)
            for token in listed if isinstance(listed, list) else []:
                found.add(token_text(token) or "")
    return frozenset(found - {""})


Settings = Mapping[str, Any]

_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BYTE_LEVEL = ("GPT2", "GPTNeoX", "OPT", "Roberta", "Qwen2")
ADDS_ITS_START = ("OPT", "Llama", "Gemma")
"""Ways of reading that put the start token before a text unless the settings say otherwise."""

FREE_ENDS = ("GPT2", "GPTNeoX", "OPT", "Llama", "Gemma", "Qwen2", "Bloom", "PreTrained", "")
"""Ways of reading in which the settings decide what stands around a text."""


def word_pieces(files: Files, way: str, settings: Settings, roles: Roles) -> dict[str, Any]:
    """vocab.txt: one token for each line, its ID being the line."""
    if way != "Bert":
        raise TextError(f"a vocab.txt as {_name(way)} reads it is not known here.")
    if settings.get("do_basic_tokenize") is False or settings.get("never_split"):
        raise TextError("its settings ask for another splitting of words than BERT's.")
    vocabulary = {token: number for number, token in enumerate(file_lines(files, "vocab.txt"))}
    start, end = roles.get("cls", "[CLS]"), roles.get("sep", "[SEP]")
    for text in (start, end, roles.get("unk", "[UNK]")):
        if text not in vocabulary:
            raise TextError(f"vocab.txt has no {text[:40]}.")
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": _flag(settings, "tokenize_chinese_chars", True),
            "strip_accents": _flag(settings, "strip_accents", None),
            "lowercase": _flag(settings, "do_lower_case", True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": template(
            [(start, 0), ("$A", 0), (end, 0)],
            [(start, 0), ("$A", 0), (end, 0), ("$B", 1), (end, 1)],
            vocabulary,
        ),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": roles.get("unk", "[UNK]"),
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
        "added_tokens": added_tokens(files, settings, roles, vocabulary),
    }


def byte_level(files: Files, way: str, settings: Settings, roles: Roles) -> dict[str, Any]:
    """vocab.json has the token IDs, merges.txt one merge per line, the first in training first."""
    if way not in BYTE_LEVEL:
        raise TextError(f"vocab.json and merges.txt as {_name(way)} reads them are not known here.")
    vocabulary = json_object(files, "vocab.json")
    lines = file_lines(files, "merges.txt")
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    prefix = _flag(settings, "add_prefix_space", False)
    splits: dict[str, Any] = {
        "type": "ByteLevel",
        "add_prefix_space": prefix,
        "trim_offsets": True,
        "use_regex": way != "Qwen2",
    }
    if way == "Qwen2":
        words = {"type": "Split", "pattern": {"Regex": _QWEN2}, "behavior": "Isolated"}
        splits = {"type": "Sequence", "pretokenizers": [words | {"invert": False}, splits]}
    added = added_tokens(files, settings, roles, vocabulary)
    numbers = vocabulary | {token["content"]: token["id"] for token in added}
    return {
        "normalizer": {"type": "NFC"} if way == "Qwen2" else None,
        "pre_tokenizer": splits,
        "post_processor": _roberta(settings, roles, numbers, prefix)
        if way == "Roberta"
        else ends(way, settings, roles, numbers),
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocabulary,
            "merges": merges,
        },
        "added_tokens": added,
    }


def ends(
    way: str, settings: Settings, roles: Roles, numbers: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The start and end tokens around each text, where the settings or the way ask for them."""
    bos, eos = roles.get("bos"), roles.get("eos")
    before = [bos] if bos and _flag(settings, "add_bos_token", way in ADDS_ITS_START) else []
    after = [eos] if eos and _flag(settings, "add_eos_token", False) else []
    if not before and not after:
        return None
    single = [*before, "$A", *after]
    second = [*before, "$B", *after]
    return template(
        [(name, 0) for name in single],
        [(name, 0) for name in single] + [(name, 1) for name in second],
        numbers,
    )


def template(
    single: list[tuple[str, int]], pair: list[tuple[str, int]], numbers: Mapping[str, Any]
) -> dict[str, Any]:
    """The library's description of what stands around a text; $A and $B are the texts."""

    def item(name: str, segment: int) -> dict[str, Any]:
        if name in ("$A", "$B"):
            return {"Sequence": {"id": name[1], "type_id": segment}}
        return {"SpecialToken": {"id": name, "type_id": segment}}

    around = {name for name, _ in pair if name not in ("$A", "$B")}
    for name in around:
        if name not in numbers:
            raise TextError(f"its vocabulary has no {name[:40]}.")
    return {
        "type": "TemplateProcessing",
        "single": [item(*part) for part in single],
        "pair": [item(*part) for part in pair],
        "special_tokens": {
            name: {"id": name, "ids": [numbers[name]], "tokens": [name]} for name in around
        },
    }


def added_tokens(
    files: Files, settings: Settings, roles: Roles, vocabulary: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Every token outside the model that the library must know: declared ones, and the mask."""
    found: dict[str, dict[str, Any]] = {}
    declared = settings.get("added_tokens_decoder")
    options = declared if isinstance(declared, dict) else {}
    for number, text, special in sorted(
        added_entries(settings, json_object(files, "added_tokens.json"))
    ):
        flags = options.get(str(number))
        flags = flags if isinstance(flags, dict) else {}
        found[text] = {"id": number, "content": text, "special": special} | {
            name: flags.get(name) is True for name in ("single_word", "lstrip", "rstrip")
        }
        found[text]["normalized"] = flags.get("normalized", not special) is True
    mask = roles.get("mask")
    if mask is not None and mask in vocabulary and mask not in found:
        found[mask] = {"id": vocabulary[mask], "content": mask, "special": False}
        found[mask]["lstrip"] = mask == "<mask>"  # it takes the place of a word and its space
    return list(found.values())


def _roberta(
    settings: Settings, roles: Roles, numbers: Mapping[str, Any], prefix: Any
) -> dict[str, Any]:
    start, end = roles.get("cls", "<s>"), roles.get("sep", "</s>")
    for text in (start, end):
        if text not in numbers:
            raise TextError(f"its vocabulary has no {text[:40]}.")
    return {
        "type": "RobertaProcessing",
        "sep": [end, numbers[end]],
        "cls": [start, numbers[start]],
        "trim_offsets": _flag(settings, "trim_offsets", True),
        "add_prefix_space": prefix,
    }


def _flag(settings: Settings, name: str, otherwise: bool | None) -> bool | None:
    value = settings.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, bool):
        raise TextError(f"{name} in its settings is neither true nor false.")
    return value


def _name(way: str) -> str:
    return way[:40] or "this family"
