"""Texts are cut as llama.cpp cuts them, by its own patterns, which another library follows here."""

import json
from collections.abc import Sequence

import pytest
import regex
import tokenizers

from models.loading.gguf_pretokenizers import PRE_TOKENIZERS
from tests.text.published.gguf_vocabularies import many_texts

SHORT = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
NAME = r"[^\r\n\p{L}\p{N}]?\p{L}+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
FREE = r"[^\r\n\p{L}\p{N}]?"
PATHS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = (rf"{SHORT}|{NAME}|\p{{N}}{{1,3}}|{REST}",)
QWEN2 = (rf"{SHORT}|{NAME}|\p{{N}}|{REST}",)
BLOOM = " ?[^(\\s|.,!?…。，、।۔،)]+"
PATTERNS: dict[str, Sequence[str]] = {
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    **dict.fromkeys(("gpt-2", "phi-2", "roberta-bpe", "trillion", "olmo", "mpt"), (GPT2,)),
    **dict.fromkeys(("starcoder", "smollm", "refact", "command-r", "minerva-7b"), (r"\p{N}", GPT2)),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "midm-2.0"), LLAMA3),
    **dict.fromkeys(("dbrx", "smaug-bpe"), LLAMA3),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez"), QWEN2),
    **dict.fromkeys(("bloom", "gpt3-finnish", "poro-chat"), (BLOOM,)),
    "viking": [BLOOM, r"\p{N}"],
    "tekken": [rf"{FREE}{UPPER}*{LOWER}+|{FREE}{UPPER}+{LOWER}*|\p{{N}}|{PATHS}"],
    "gpt-4o": [
        rf"{FREE}{UPPER}*{LOWER}+{SHORT}?|{FREE}{UPPER}+{LOWER}*{SHORT}?|\p{{N}}{{1,3}}|{PATHS}"
    ],
    "deepseek-llm": [
        *("[\r\n]", r"\s?[\p{Lu}\p{Ll}\p{Lt}]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$"),
        *("[一-龥ࠀ-一가-퟿]+", r"\p{N}+"),
    ],
    "deepseek-coder": [*("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}")],
    "seed-coder": [
        rf"{SHORT}|{NAME}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
    ],
}
"""The lists in llama.cpp's src/llama-vocab.cpp; of tekken and gpt-4o the originals quoted there."""


def cut(text: str, patterns: Sequence[regex.Pattern[str]]) -> list[str]:
    """`unicode_regex_split`: each pattern cuts what those before it left."""
    parts = [text]
    for pattern in patterns:
        parts = [piece for part in parts for piece in pattern.split(part) if piece]
    return parts


def library(name: str) -> tokenizers.pre_tokenizers.PreTokenizer:
    parts = {"type": "Sequence", "pretokenizers": list(PRE_TOKENIZERS[name].parts)}
    model = {"type": "BPE", "vocab": {}, "merges": []}
    stored = json.dumps({"version": "1.0", "pre_tokenizer": parts, "model": model})
    return tokenizers.Tokenizer.from_str(stored).pre_tokenizer


@pytest.mark.parametrize("name", sorted(PATTERNS.keys() | PRE_TOKENIZERS.keys()))
def test_words_are_those_of_the_patterns(name: str, request: pytest.FixtureRequest) -> None:
    thorough = request.config.getoption("--thorough")
    patterns = [
        regex.compile("(" + each.replace(r"\s", r"\p{White_Space}") + ")")
        for each in PATTERNS[name]
    ]
    ours = library(name)
    for text in many_texts(5_000 if thorough else 500):
        spans = [span for _, span in ours.pre_tokenize_str(text)]
        assert [text[start:end] for start, end in spans] == cut(text, patterns), repr(text)
