"""tokenizer.json files made to do harm, by what is wrong with them."""

import json
from typing import Any

ABSENT = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
WORDS: dict[str, Any] = ABSENT | {
    "version": "1.0",
    "added_tokens": [],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1, "b": 2}, "unk_token": "<unk>"},
}
BPE = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
FOLLOWS_THE_FILE = '{"tokenizer_class": "PreTrainedTokenizerFast"}'
UNIGRAM = {"type": "Unigram", "vocab": [["<unk>", 0.0], ["a", -1.0]], "unk_id": 0}


def words(**parts: Any) -> str:
    return json.dumps(WORDS | parts)


def model(**parts: Any) -> str:
    return words(model=WORDS["model"] | parts)


def added(**parts: Any) -> str:
    token = {"id": 3, "content": "x", "special": False}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return words(added_tokens=[token | flags | parts])


def replace(pattern: Any, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def sequence(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(parts)}


def nested(depth: int) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "Lowercase"}
    for _ in range(depth):
        part = sequence(part)
    return part


def split(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def template(single: list[Any]) -> dict[str, Any]:
    return {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {}}


A = {"Sequence": {"id": "A", "type_id": 0}}

REFUSED: dict[str, str] = {
    "nothing": "",
    "deep JSON": "[" * 200_000,
    "a number of many digits": '{"model": ' + "9" * 100_000 + "}",
    "no model": "{}",
    "an unknown model": words(model={"type": "Magic", "vocab": {"a": 0}}),
    "a number too large": model(vocab={"<unk>": 0, "a": 2**32 - 1}),
    "half a character": model(vocab={"<unk>": 0, "\ud800": 1}),
    "merges out of the vocabulary": words(model=BPE | {"merges": [["a", "z"]]}),
    "no such unknown token": words(model=UNIGRAM | {"unk_id": 10**9}),
    "a score beyond all": words(model=UNIGRAM | {"vocab": [["a", 0]]}).replace("0]", "1e999]"),
    "a piece twice": words(model=UNIGRAM | {"vocab": [["<unk>", 0.0], ["a", -1.0], ["a", -2.0]]}),
    "an added token beyond all": added(id=10**12),
    "a hundred thousand added tokens": words(
        added_tokens=[{"id": n, "content": str(n), "special": False} for n in range(100_000)]
    ),
    "a Sequence in a Sequence": words(normalizer=nested(100)),
    "very many normalizers": words(normalizer=sequence(*[{"type": "NFC"}] * 100_000)),
    "a Replace of a megabyte": words(normalizer=replace({"String": "a"}, "a" * 10**6)),
    "a very long regex": words(pre_tokenizer=split("(a|b)" * 10_000)),
    "a broken regex": words(pre_tokenizer=split("(((")),
    "an unknown part": words(normalizer={"type": "Execute", "code": "1"}),
    "a charsmap that is none": words(
        normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    ),
    "special tokens that are not there": words(
        post_processor=template([A, {"SpecialToken": {"id": "<gone>", "type_id": 0}}])
    ),
}
"""Refused when it is opened; what else is none is drawn."""

LONG_WORDS = {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##"} | {
    "vocab": {"<unk>": 0, "a": 1, "##a": 2}, "max_input_chars_per_word": 2**40,
}  # fmt: skip
ENDLESS: dict[str, str] = {
    "a catastrophic regex": words(pre_tokenizer=split("(a+)+$|(a|aa)+$")),
    "a catastrophic Replace": words(normalizer=replace({"Regex": "(a*)*b|(a|a)*$c"}, "")),
    "each a becomes thousands, twice": words(
        normalizer=sequence(*[replace({"String": "a"}, "a" * 4_000)] * 2)
    ),
    "nothing becomes something": words(normalizer=replace({"String": ""}, "a" * 4_000)),
    "the text a thousand times": words(post_processor=template([A] * 15_000)),
    "words without end": words(
        pre_tokenizer=None, normalizer=replace({"String": "a"}, "a" * 3_000), model=LONG_WORDS
    ),
    "a prefix longer than its tokens": words(
        pre_tokenizer=None, model=BPE | {"continuing_subword_prefix": "ab", "merges": [["a", "b"]]}
    ),
}
"""OpenModel or not; where it is, reading a text ends in a sentence or in few tokens."""
