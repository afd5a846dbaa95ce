"""How each family reads its files: its special tokens, and what its older files mean.

A vocab.txt, or a vocab.json with merges.txt, becomes a tokenizer.json that reads the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from explorer.text.checked_text import TextError
from explorer.text.published.tokenizer_files import Files, file_lines, json_object

ROLES = ("pad", "bos", "eos", "unk", "cls", "sep", "mask")
LONGEST_SPECIAL = 1_000

FAMILIES = {
    "bert": "Bert",
    "distilbert": "Bert",
    "electra": "Bert",
    "mobilebert": "Bert",
    "gpt2": "GPT2",
    "gptj": "GPT2",
    "gpt_neo": "GPT2",
    "gpt_neox": "GPTNeoX",
    "opt": "OPT",
    "roberta": "Roberta",
    "bart": "Roberta",
    "xlm-roberta": "XLMRoberta",
    "camembert": "Camembert",
    "mbart": "MBart",
    "marian": "Marian",
    "t5": "T5",
    "mt5": "T5",
    "llama": "Llama",
    "mistral": "Llama",
    "phi3": "Llama",
    "gemma": "Gemma",
    "gemma2": "Gemma",
    "gemma3_text": "Gemma",
    "qwen2": "Qwen2",
    "qwen3": "Qwen2",
    "bloom": "Bloom",
}
"""The kind of tokenizer of each family; a folder may name another one."""

SAME = {
    "DistilBert": "Bert",
    "Electra": "Bert",
    "MobileBert": "Bert",
    "Bart": "Roberta",
    "Longformer": "Roberta",
    "CodeLlama": "Llama",
    "MT5": "T5",
    "Qwen3": "Qwen2",
}
GENERAL = {"PreTrained", "PreTrainedTokenizer", "TokenizersBackend", "Tokenizers", ""}

_FAIRSEQ = {
    "pad": "<pad>",
    "bos": "<s>",
    "eos": "</s>",
    "unk": "<unk>",
    "cls": "<s>",
    "sep": "</s>",
    "mask": "<mask>",
}
_END = "<|endoftext|>"
_DEFAULTS: dict[str, dict[str, str]] = {
    "Bert": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "GPT2": {"bos": _END, "eos": _END, "unk": _END},
    "GPTNeoX": {"bos": _END, "eos": _END, "unk": _END},
    "OPT": {"pad": "<pad>", "bos": "</s>", "eos": "</s>", "unk": "</s>"},
    "Roberta": _FAIRSEQ,
    "XLMRoberta": _FAIRSEQ,
    "Camembert": _FAIRSEQ,
    "MBart": _FAIRSEQ,
    "MBart50": _FAIRSEQ,
    "Marian": {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
    "T5": {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
    "Llama": {"bos": "<s>", "eos": "</s>", "unk": "<unk>"},
    "Gemma": {"pad": "<pad>", "bos": "<bos>", "eos": "<eos>", "unk": "<unk>"},
    "Qwen2": {"pad": _END, "eos": _END},
    "Bloom": {"pad": "<pad>", "bos": "<s>", "eos": "</s>", "unk": "<unk>"},
}


def reading_of(family: str, settings: Mapping[str, Any]) -> str:
    """The kind of tokenizer that the folder names, else its family's."""
    named = settings.get("tokenizer_class")
    name = _class_name(named) if isinstance(named, str) else ""
    own = FAMILIES.get(family, family)
    if name in GENERAL or (own == "OPT" and name == "GPT2"):
        return own
    return SAME.get(name, name)


def _class_name(name: str) -> str:
    return name.removesuffix("Fast").removesuffix("Tokenizer")


class Roles(dict[str, str]):
    """The text of the token that plays each role."""


def special_roles(way: str, settings: Mapping[str, Any], special: Mapping[str, Any]) -> Roles:
    """The roles of tokenizer_config.json, then special_tokens_map.json, then the family.

    No token has a role that is null in a file.
    """
    roles = Roles(_DEFAULTS.get(way, {}))
    for source in (special, settings):
        for role in ROLES:
            if f"{role}_token" in source:
                text = token_text(source[f"{role}_token"])
                if text is None:
                    roles.pop(role, None)
                else:
                    roles[role] = text
    return roles


def token_text(token: Any) -> str | None:
    """The text of a special token as the files write it: plain, or with its options."""
    text = token.get("content") if isinstance(token, dict) else token
    if text is None or text == "":
        return None
    if not isinstance(text, str) or len(text) > LONGEST_SPECIAL:
        raise TextError("a special token in its settings is not a short text.")
    return text


def added_entries(
    settings: Mapping[str, Any], added: Mapping[str, Any]
) -> Iterator[tuple[int, str, bool]]:
    """The tokens that were added to a vocabulary: ID, text and whether it is special."""
    declared = settings.get("added_tokens_decoder")
    listed: dict[Any, Any] = declared if isinstance(declared, dict) else {}
    extra = settings.get("additional_special_tokens")
    special = {token_text(token) for token in extra} if isinstance(extra, list) else set()
    for number, token in listed.items():
        text = token_text(token)
        if text is not None and str(number).isdecimal() and len(str(number)) < 9:
            yield int(number), text, bool(isinstance(token, dict) and token.get("special"))
    declared_texts = {token_text(token) for token in listed.values()}
    for text, number in added.items():
        if text not in declared_texts and type(number) is int and 0 <= number < 10**8:
            yield number, text[:LONGEST_SPECIAL], text in special


def whole_file(files: Files, way: str, settings: dict[str, Any], roles: Roles) -> dict[str, Any]:
    """tokenizer.json as the reference reads it.

    The classes in `REBUILT` take only vocabulary and merges from it: their settings decide how a
    text is cut. Tokens that only the files beside it name are added.
    """
    stored = json_object(files, "tokenizer.json")
    model, added = stored.get("model"), stored.get("added_tokens")
    if not isinstance(model, dict) or not isinstance(added or [], list):
        return stored
    vocabulary = model.get("vocab")
    listed = {
        token["content"]: token
        for token in added or []
        if isinstance(token, dict) and isinstance(token.get("content"), str)
    }
    beside = {token["content"]: token for token in added_tokens(files, settings, roles, {})}
    pieces = vocabulary if isinstance(vocabulary, dict) else {}
    if isinstance(vocabulary, list):
        pieces = {p[0]: i for i, p in enumerate(vocabulary) if isinstance(p, list) and p}
    numbers = {**pieces, **{text: token.get("id") for text, token in listed.items()}}
    used = set(numbers.values())
    for text, token in beside.items():
        if text in listed:
            continue
        number = numbers.get(text, token["id"])
        if text not in numbers and number in used:
            raise TextError(f"{text[:40]!r} was added with an ID that another token has.")
        listed[text], numbers[text] = token | {"id": number}, number
        used.add(number)
    for text in named_tokens(settings).values():
        if text not in numbers:
            following = max((n for n in numbers.values() if type(n) is int), default=-1) + 1
            listed[text] = {"id": following, "content": text, "special": True}
            numbers[text] = following
    stored["added_tokens"] = sorted(listed.values(), key=_number)
    if way in FREE_ENDS and any(type(settings.get(f"add_{e}_token")) is bool for e in _ENDS):
        around = ends(way, settings, roles, numbers)
        if around is not None or _adds(stored.get("post_processor")):
            stored["post_processor"] = around
    kind = rebuilt_class(way, settings)
    if kind and not isinstance(vocabulary, dict):
        raise TextError(f"{_name(kind)}'s tokenizer does not read its list of pieces.")
    if kind == "Bert":
        stored |= bert_parts(settings, roles, pieces, numbers)
    elif kind:
        stored |= byte_parts(kind, settings, pieces, model.get("merges") or [])
        if kind == "Roberta":
            prefix = _flag(settings, "add_prefix_space", False)
            stored["post_processor"] = _roberta(settings, roles, numbers, prefix)
    return stored


_ENDS = ("bos", "eos")


def _adds(processor: Any) -> bool:
    return isinstance(processor, dict) and processor.get("type") == "TemplateProcessing"


def _number(token: dict[str, Any]) -> int:
    return token["id"] if isinstance(token.get("id"), int) else LARGEST_NUMBER


LARGEST_NUMBER = 10**9
REBUILT = ("Bert", "GPT2", "GPTNeoX", "OPT", "Roberta", "Qwen2")
"""Kinds of which the reference takes from tokenizer.json no more than vocabulary and merges."""


def rebuilt_class(way: str, settings: Mapping[str, Any]) -> str | None:
    """The kind in `REBUILT` that the reference opens; None where it follows tokenizer.json."""
    named = settings.get("tokenizer_class")
    is_general = isinstance(named, str) and _class_name(named) in GENERAL - {""}
    return way if way in REBUILT and not is_general else None


def named_tokens(settings: Mapping[str, Any]) -> dict[str, str]:
    """Special tokens with a name of their own, as a chat template calls them: `boi_token`."""
    usual = {f"{role}_token" for role in ROLES}
    extra = settings.get("extra_special_tokens")
    own = {name: token for name, token in settings.items() if name.endswith("_token")}
    named = own | (extra if isinstance(extra, dict) else {})
    texts = {
        name: token_text(token)
        for name, token in named.items()
        if name not in usual and isinstance(token, (str, dict))
    }
    return {name: text for name, text in texts.items() if text}


def more_special(files: Files, settings: dict[str, Any], special: dict[str, Any]) -> frozenset[str]:
    """Special tokens of the settings that have no role."""
    texts = {text for _, text, is_special in added_entries(settings, {}) if is_special}
    for source in (settings, special):
        for name in ("additional_special_tokens", "extra_special_tokens"):
            listed = source.get(name)
            for token in listed if isinstance(listed, list) else []:
                texts.add(token_text(token) or "")
    return frozenset((texts | set(named_tokens(settings).values())) - {""})


Settings = Mapping[str, Any]

_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BYTE_LEVEL = ("GPT2", "GPTNeoX", "OPT", "Roberta", "Qwen2")
ADDS_ITS_START = ("OPT", "Llama", "Gemma")
"""Kinds that put the start token before a text unless the settings say otherwise."""

FREE_ENDS = ("GPT2", "GPTNeoX", "OPT", "Llama", "Gemma", "Qwen2", "Bloom", "PreTrained", "")
"""Kinds whose settings decide which tokens are around a text."""


def word_pieces(files: Files, way: str, settings: Settings, roles: Roles) -> dict[str, Any]:
    """vocab.txt: one token for each line; its ID is the number of the line."""
    if way != "Bert":
        raise TextError(f"a vocab.txt as {_name(way)} reads it is not known here.")
    vocabulary = {token: number for number, token in enumerate(file_lines(files, "vocab.txt"))}
    return {
        **bert_parts(settings, roles, vocabulary, vocabulary),
        "added_tokens": added_tokens(files, settings, roles, vocabulary),
    }


def bert_parts(
    settings: Settings, roles: Roles, vocabulary: Mapping[str, Any], numbers: Mapping[str, Any]
) -> dict[str, Any]:
    """BERT's tokenizer, as its settings say: the file but for its added tokens.

    `numbers` has these too.
    """
    if settings.get("do_basic_tokenize") is False or settings.get("never_split"):
        raise TextError("its settings ask for another splitting of words than BERT's.")
    start, end = roles.get("cls", "[CLS]"), roles.get("sep", "[SEP]")
    unknown = roles.get("unk", "[UNK]")
    for text in (start, end, unknown):
        if text not in numbers:
            raise TextError(f"its vocabulary has no {text[:40]}.")
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
            numbers,
        ),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": unknown,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
    }


def byte_level(files: Files, way: str, settings: Settings, roles: Roles) -> dict[str, Any]:
    """vocab.json has the token IDs, merges.txt one merge per line in the order of training."""
    if way not in BYTE_LEVEL:
        raise TextError(f"vocab.json and merges.txt as {_name(way)} reads them are not known here.")
    vocabulary = json_object(files, "vocab.json")
    lines = file_lines(files, "merges.txt")
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    prefix = _flag(settings, "add_prefix_space", False)
    added = added_tokens(files, settings, roles, vocabulary)
    numbers = vocabulary | {token["content"]: token["id"] for token in added}
    return {
        **byte_parts(way, settings, vocabulary, merges),
        "post_processor": _roberta(settings, roles, numbers, prefix)
        if way == "Roberta"
        else ends(way, settings, roles, numbers),
        "added_tokens": added,
    }


def byte_parts(
    way: str, settings: Settings, vocabulary: Mapping[str, Any], merges: Sequence[Any]
) -> dict[str, Any]:
    """A byte-level tokenizer of this kind, but for its added tokens and those around a text."""
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
    return {
        "normalizer": {"type": "NFC"} if way in ("Qwen2", "GPTNeoX") else None,
        "pre_tokenizer": splits,
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
    }


def ends(
    way: str, settings: Settings, roles: Roles, numbers: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The start and end tokens around each text, where the settings or the kind ask for them."""
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
    """The library's description of the tokens around a text; $A and $B are the texts."""

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
    """The tokens outside the model that the library must know: the declared ones and the mask."""
    tokens: dict[str, dict[str, Any]] = {}
    declared = settings.get("added_tokens_decoder")
    options = declared if isinstance(declared, dict) else {}
    for number, text, special in sorted(
        added_entries(settings, json_object(files, "added_tokens.json"))
    ):
        flags = options.get(str(number))
        flags = flags if isinstance(flags, dict) else {}
        tokens[text] = {"id": number, "content": text, "special": special} | {
            name: flags.get(name) is True for name in ("single_word", "lstrip", "rstrip")
        }
        tokens[text]["normalized"] = flags.get("normalized", not special) is True
    mask = roles.get("mask")
    if mask is not None and mask in vocabulary and mask not in tokens:
        tokens[mask] = {"id": vocabulary[mask], "content": mask, "special": False}
        tokens[mask]["lstrip"] = mask == "<mask>"  # it takes the place of a word and its space
    return list(tokens.values())


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
