"""The tokenizers that the reference builds anew from a vocabulary.

Of these kinds it takes from tokenizer.json no more than the vocabulary, the merges, the tokens
around a text and the table of characters: the settings decide how a text is cut.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from explorer.text.checked_text import TextError
from explorer.text.published.added_tokens import Settings, source_language

Part = dict[str, Any]
Roles = Mapping[str, str]
Numbers = Mapping[str, Any]
WORD_START = "▁"
_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def bert_parts(stored: Part, settings: Settings, roles: Roles) -> Part:
    if settings.get("do_basic_tokenize") is False or settings.get("never_split"):
        raise TextError("its settings ask for another splitting of words than BERT's.")
    unknown = _unknown(stored, roles)
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": flag(settings, "tokenize_chinese_chars", True),
            "strip_accents": flag(settings, "strip_accents", None),
            "lowercase": flag(settings, "do_lower_case", True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": unknown,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": stored["model"]["vocab"],
        },
    }


def _unknown(stored: Part, roles: Roles) -> str:
    """The text of the unknown token, which the vocabulary must have."""
    if (text := roles.get("unk")) is None:
        raise TextError("its settings have no unk_token, which its pieces need.")
    _number(text, stored["model"]["vocab"])
    return text


def byte_parts(stored: Part, settings: Settings, roles: Roles) -> Part:
    return _bytes(stored, flag(settings, "add_prefix_space", False))


def composed_byte_parts(stored: Part, settings: Settings, roles: Roles) -> Part:
    return byte_parts(stored, settings, roles) | {"normalizer": {"type": "NFC"}}


def qwen2_parts(stored: Part, settings: Settings, roles: Roles) -> Part:
    parts = composed_byte_parts(stored, settings, roles)
    words = {"type": "Split", "pattern": {"Regex": _QWEN2}, "behavior": "Isolated"}
    splits = [words | {"invert": False}, parts["pre_tokenizer"] | {"use_regex": False}]
    return parts | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": splits}}


def _bytes(stored: Part, prefix: bool | None) -> Part:
    usual = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    return {
        "normalizer": None,
        "pre_tokenizer": usual | {"add_prefix_space": prefix},
        "decoder": usual | {"add_prefix_space": True},
        "model": _bpe(stored, continuing_subword_prefix="", end_of_word_suffix=""),
    }


def _bpe(stored: Part, **more: Any) -> Part:
    usual: Part = {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False}
    vocabulary, merges = stored["model"]["vocab"], stored["model"].get("merges") or []
    return usual | {"byte_fallback": False} | more | {"vocab": vocabulary, "merges": merges}


def _replaced(old: str, new: str) -> Part:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


SPACES, SPACES_BACK = _replaced(" ", WORD_START), _replaced(WORD_START, " ")
BYTES_BACK: tuple[Part, ...] = ({"type": "ByteFallback"}, {"type": "Fuse"})


def llama_parts(stored: Part, settings: Settings, roles: Roles) -> Part:
    prefix = flag(settings, "add_prefix_space", True)
    scheme = "always" if settings.get("legacy") is True else "first"
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    return {
        "normalizer": None,
        "pre_tokenizer": _metaspace(scheme if prefix else "never", split=False),
        "decoder": _sequence("decoders", SPACES_BACK, *BYTES_BACK, *strip),
        "model": _bpe(stored, fuse_unk=True, byte_fallback=True),
    }


def gemma_parts(stored: Part, settings: Settings, roles: Roles) -> Part:
    cut = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"}
    unknown = _unknown(stored, roles)
    return {
        "normalizer": SPACES,
        "pre_tokenizer": cut | {"invert": False},
        "decoder": _sequence("decoders", SPACES_BACK, *BYTES_BACK),
        "model": _bpe(stored, unk_token=unknown, fuse_unk=True, byte_fallback=True),
    }


def fairseq_parts(stored: Part, settings: Settings, roles: Roles) -> Part:
    prefix = flag(settings, "add_prefix_space", "add_prefix_space" not in settings)
    return _unigram(stored, 3, "always" if prefix else "never")


def camembert_parts(stored: Part, settings: Settings, roles: Roles) -> Part:
    pieces = enumerate(stored["model"]["vocab"])
    places = (at for at, piece in pieces if piece[0] == roles.get("unk", "None"))
    parts = fairseq_parts(stored, settings, roles)
    return parts | {"model": parts["model"] | {"unk_id": next(places, 0)}}


def mbart50_parts(stored: Part, settings: Settings, roles: Roles) -> Part:
    parts = _unigram(stored, 3, "always", _ONE_SPACE)
    return parts | {"pre_tokenizer": _metaspace("always")}


def pegasus_parts(stored: Part, settings: Settings, roles: Roles) -> Part:
    lines = {"type": "Replace", "pattern": {"Regex": r"\n"}, "content": " "}
    pieces = stored["model"]["vocab"]
    unknown = roles.get("unk", "<unk>")
    at = next((i for i, p in enumerate(pieces) if i and (p[0], p[1]) == (unknown, 0)), None)
    if at is None:
        raise TextError(f"its vocabulary has no {unknown[:40]}.")
    parts = _unigram(stored, at, "always", _ONE_SPACE)
    if parts["normalizer"]["normalizers"] == [_ONE_SPACE]:
        parts["normalizer"]["normalizers"] = [lines, _ONE_SPACE]
    return parts | {"pre_tokenizer": _metaspace("always")}


_ONE_SPACE: Part = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}


def _unigram(stored: Part, unknown: int, scheme: str, *after: Part) -> Part:
    own = stored.get("normalizer")
    parts = [own, *(own.get("normalizers") or [])] if isinstance(own, dict) else []
    # sentencepiece's table of characters, where the file has one
    first = [part for part in parts if isinstance(part, dict) and part.get("type") == "Precompiled"]
    table = first[0] if first else None
    spaces = _metaspace(scheme)
    return {
        "normalizer": _sequence("normalizers", *first[:1], *after) if after else table,
        "pre_tokenizer": _sequence("pretokenizers", {"type": "WhitespaceSplit"}, spaces),
        "decoder": spaces,
        "model": {
            "type": "Unigram",
            "unk_id": unknown,
            "byte_fallback": False,
            "vocab": stored["model"]["vocab"],
        },
    }


def _metaspace(scheme: str, *, split: bool = True) -> Part:
    return {
        "type": "Metaspace",
        "replacement": WORD_START,
        "prepend_scheme": scheme,
        "split": split,
    }


def _sequence(name: str, *parts: Part) -> Part:
    return {"type": "Sequence", name: list(parts)}


PARTS: Mapping[str, Callable[[Part, Settings, Roles], Part]] = {
    "Bert": bert_parts,
    "GPT2": byte_parts,
    "GPTNeoX": composed_byte_parts,
    "Roberta": byte_parts,
    "Blenderbot": lambda stored, settings, _: _bytes(
        stored, flag(settings, "add_prefix_space", True)
    ),
    "Qwen2": qwen2_parts,
    "Llama": llama_parts,
    "Gemma": gemma_parts,
    "T5": lambda stored, *_: _unigram(stored, 2, "always"),
    "XLMRoberta": fairseq_parts,
    "Camembert": camembert_parts,
    "MBart": lambda stored, *_: _unigram(stored, 3, "always") | {"normalizer": None},
    "MBart50": mbart50_parts,
    "Pegasus": pegasus_parts,
}
"""By kind: everything but the added tokens and the tokens around a text."""
LISTED = ("T5", "XLMRoberta", "Camembert", "MBart", "MBart50", "Pegasus")
"""Kinds whose vocabulary is a list of pieces."""


AROUND = {
    "T5": ("$A eos", "$A eos $B eos"),
    "XLMRoberta": ("bos $A eos", "bos $A eos eos $B eos"),
    "Camembert": ("bos $A eos", "bos $A eos eos $B eos"),
    "Pegasus": ("$A eos", "$A $B eos"),
    "MBart": ("$A eos language", "$A $B eos language"),
    "MBart50": ("language $A eos", "language $A $B eos"),
}
"""The tokens around one text and around a pair, by kind and by their roles."""


def around(
    kind: str, settings: Settings, roles: Roles, numbers: Numbers, stored: Any
) -> Part | None:
    """The tokens around a text; `stored` are those of tokenizer.json, None without one."""

    def of(role: str, usual: str) -> str:
        return roles.get(role, usual)

    if kind == "Bert":
        start, end = of("cls", "[CLS]"), of("sep", "[SEP]")
        alone = [(start, 0), ("$A", 0), (end, 0)]
        return template(alone, [*alone, ("$B", 1), (end, 1)], numbers)
    if kind == "Roberta":
        start, end = of("cls", "<s>"), of("sep", "</s>")
        return {
            "type": "RobertaProcessing",
            "sep": [end, _number(end, numbers)],
            "cls": [start, _number(start, numbers)],
            "trim_offsets": flag(settings, "trim_offsets", True),
            "add_prefix_space": flag(settings, "add_prefix_space", False),
        }
    if kind not in AROUND:
        return stored if kind != "GPTNeoX" else None
    names = {"bos": of("bos", "<s>"), "eos": of("eos", "</s>")}
    if kind == "T5":
        numbers = {**numbers, "</s>": _number(names["eos"], numbers)}
        names["eos"] = "</s>"
    if kind in ("MBart", "MBart50"):
        names["language"] = source_language(settings, numbers)
    single, pair = ([(names.get(name, name), 0) for name in line.split()] for line in AROUND[kind])
    return template(single, pair, numbers)


def ends(settings: Settings, roles: Roles, numbers: Numbers) -> Part | None:
    """The start and end tokens around each text, where the settings ask for them."""
    bos, eos = roles.get("bos"), roles.get("eos")
    before = [bos] if bos and flag(settings, "add_bos_token", False) else []
    after = [eos] if eos and flag(settings, "add_eos_token", False) else []
    if not before and not after:
        return None
    single, second = [*before, "$A", *after], [*before, "$B", *after]
    return template(
        [(name, 0) for name in single],
        [(name, 0) for name in single] + [(name, 1) for name in second],
        numbers,
    )


def template(
    single: Sequence[tuple[str, int]], pair: Sequence[tuple[str, int]], numbers: Numbers
) -> Part:
    """The library's description of the tokens around a text; $A and $B are the texts."""

    def item(name: str, segment: int) -> Part:
        if name in ("$A", "$B"):
            return {"Sequence": {"id": name[1], "type_id": segment}}
        return {"SpecialToken": {"id": name, "type_id": segment}}

    names = {name for name, _ in pair if name not in ("$A", "$B")}
    return {
        "type": "TemplateProcessing",
        "single": [item(*part) for part in single],
        "pair": [item(*part) for part in pair],
        "special_tokens": {
            name: {"id": name, "ids": [_number(name, numbers)], "tokens": [name]} for name in names
        },
    }


def _number(name: str, numbers: Numbers) -> Any:
    if name not in numbers:
        raise TextError(f"its vocabulary has no {name[:40]}.")
    return numbers[name]


def flag(settings: Settings, name: str, otherwise: bool | None) -> bool | None:
    """A setting that is true or false, or `otherwise` where it is not set."""
    value = settings.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, bool):
        raise TextError(f"{name} in its settings is neither true nor false.")
    return value
