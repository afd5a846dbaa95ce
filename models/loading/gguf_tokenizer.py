"""The tokenizer in a GGUF file as the tokenizer.json and tokenizer_config.json of a folder.

The file holds a vocabulary, merges or scores, and the name of llama.cpp's way to cut a text
before that; the `tokenizers` library's way to do the same is written here for each name.
Nothing is encoded here: whoever opens the texts reads them as those of any other folder.
Source: llama.cpp's src/llama-vocab.cpp; published tokenizer.json files of the models.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from models.loading.gguf_header import GgufHeader, Packed
from models.loading.safe_files import (
    TOKENIZER,
    TOKENIZER_CONFIG,
    CheckpointError,
    shown,
)

PREFIX = "tokenizer.ggml."
KIND = PREFIX + "model"
CONTROL, USER_DEFINED = 3, 4
"""Types of a token: special, and added to the vocabulary later. All others are ordinary."""
ROLES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding", "mask": "mask"}
"""The roles of special tokens with their names in the file."""
WORDS = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"


def tokenizer_files(header: GgufHeader) -> dict[str, str]:
    """The texts of tokenizer.json and tokenizer_config.json by their names; none if it has none.

    CheckpointError names what is not known. Time and memory grow with the vocabulary:
    0.2 s for 50,000 tokens with their merges.
    """
    if KIND not in header.values:
        return {}
    vocabulary = Vocabulary(header)
    settings = tokenizer_config(vocabulary)
    texts = {TOKENIZER: tokenizer_json(vocabulary), TOKENIZER_CONFIG: settings}
    return {name: json.dumps(values, ensure_ascii=False) for name, values in texts.items()}


class Vocabulary:
    """What the metadata says of the tokenizer, by name and type."""

    def __init__(self, header: GgufHeader) -> None:
        self._values, self._what = header.values, shown(header.file.name)
        self.tokens = self._texts("tokens")
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        if len(self.ids) < len(self.tokens):
            raise self.fault("has a vocabulary that names a token twice")
        kinds = self._numbers("token_type")
        self.types: Sequence[int] = kinds if kinds else [1] * len(self.tokens)
        if len(self.types) != len(self.tokens):
            raise self.fault("has types for more or fewer tokens than there are")

    def name(self, key: str, default: str) -> str:
        value = self._values.get(PREFIX + key, default)
        if not isinstance(value, str):
            raise self.fault(f"has a {PREFIX}{key} that is no name")
        return value

    def flag(self, key: str) -> bool | None:
        value = self._values.get(PREFIX + key)
        if value is not None and not isinstance(value, bool):
            raise self.fault(f"has a {PREFIX}{key} that is neither true nor false")
        return value

    def role(self, role: str) -> str | None:
        """The token of a role; an ID that the vocabulary lacks is none."""
        number = self._values.get(f"{PREFIX}{ROLES[role]}_token_id")
        known = type(number) is int and 0 <= number < len(self.tokens)
        return self.tokens[number] if known else None  # type: ignore[index]

    def template(self) -> str | None:
        """The chat template, as its text."""
        value = self._values.get("tokenizer.chat_template")
        return value if isinstance(value, str) else None

    def merges(self) -> list[list[str]]:
        pairs = [merge.split(" ", 1) for merge in self._texts("merges")]
        if any(len(pair) != 2 for pair in pairs):
            raise self.fault("has a merge that is no pair of tokens")
        return pairs

    def added(self) -> list[dict[str, Any]]:
        """The tokens that are found in a text before it is cut, or only put around it."""
        return [
            {
                "id": i,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kind == CONTROL,
            }
            for i, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True))
            if kind in (CONTROL, USER_DEFINED) and token
        ]

    def fault(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self._what} {what}.")

    def _texts(self, key: str) -> list[str]:
        packed = self._values.get(PREFIX + key)
        texts = packed.items() if isinstance(packed, Packed) else ()
        try:
            return [text.decode("utf-8") for text in texts]
        except (AttributeError, UnicodeDecodeError):
            raise self.fault(f"has {PREFIX}{key} that are not texts") from None

    def _numbers(self, key: str) -> tuple[Any, ...]:
        packed = self._values.get(PREFIX + key)
        found = packed.items() if isinstance(packed, Packed) else ()
        if any(isinstance(number, bytes) for number in found):
            raise self.fault(f"has {PREFIX}{key} that are not numbers")
        return found


def tokenizer_config(vocabulary: Vocabulary) -> dict[str, Any]:
    """Which tokens have a meaning, and the chat template."""
    found: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    found |= {f"{role}_token": vocabulary.role(role) for role in ROLES}
    if (template := vocabulary.template()) is not None:
        found["chat_template"] = template
    return found


def tokenizer_json(vocabulary: Vocabulary) -> dict[str, Any]:
    """The tokenizer of the `tokenizers` library that does the same."""
    model = vocabulary.name("model", "")
    if model != "gpt2":
        raise vocabulary.fault(f"has a tokenizer of the kind {shown(model)}, which is not known")
    return byte_level(vocabulary) | {"version": "1.0", "truncation": None, "padding": None}


def byte_level(vocabulary: Vocabulary) -> dict[str, Any]:
    """Byte-level BPE; `tokenizer.ggml.pre` names how a text is cut into words before."""
    name = vocabulary.name("pre", "default")
    if name not in PRE_TOKENIZERS:
        raise vocabulary.fault(f"cuts texts in the way {shown(name)}, which is not known")
    return {
        "added_tokens": vocabulary.added(),
        "normalizer": None,
        "pre_tokenizer": PRE_TOKENIZERS[name],
        "post_processor": around(vocabulary),
        "decoder": byte_level_part(use_regex=True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary.ids,
            "merges": vocabulary.merges(),
        },
    }


def byte_level_part(*, use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def cut_into_words(*before: Mapping[str, Any]) -> dict[str, Any]:
    """GPT-2's words, after other cuts."""
    return {"type": "Sequence", "pretokenizers": [*before, byte_level_part(use_regex=True)]}


SINGLE_DIGITS = {"type": "Digits", "individual_digits": True}
PRE_TOKENIZERS: Mapping[str, Any] = {
    "smollm": cut_into_words(SINGLE_DIGITS),
}
"""By llama.cpp's name."""


def around(vocabulary: Vocabulary) -> dict[str, Any] | None:
    """The start and end tokens that are put around a text, where the file asks for them."""
    start = vocabulary.role("bos") if vocabulary.flag("add_bos_token") else None
    end = vocabulary.role("eos") if vocabulary.flag("add_eos_token") else None
    if start is None and end is None:
        return None

    def parts(sequence: str, segment: int) -> list[dict[str, Any]]:
        text = {"Sequence": {"id": sequence, "type_id": segment}}
        tokens = [start and special(start, segment), text, end and special(end, segment)]
        return [part for part in tokens if part]

    names = {name for name in (start, end) if name is not None}
    return {
        "type": "TemplateProcessing",
        "single": parts("A", 0),
        "pair": parts("A", 0) + parts("B", 1),
        "special_tokens": {
            name: {"id": name, "ids": [vocabulary.ids[name]], "tokens": [name]} for name in names
        },
    }


def special(name: str, segment: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": name, "type_id": segment}}
