"""How a text is cut into words before byte-level BPE, by llama.cpp's name of the rules.

Each repeats the published tokenizer.json of such a model, in the terms of the `tokenizers`
library. Source: those files, quoted in llama.cpp's src/llama-vocab.cpp.
"""

from dataclasses import dataclass
from typing import Any

Part = dict[str, Any]


@dataclass(frozen=True)
class PreTokenizer:
    """Rules that cut a text, the last of which writes bytes as letters.

    `composed`: characters are put together first (NFC). `whole_words`: a word that is a token
    is not built of merges. `adds_start`: a text begins with the start token unless the file says
    otherwise.
    """

    parts: tuple[Part, ...]
    composed: bool = False
    whole_words: bool = False
    adds_start: bool = False


def as_bytes(*, words: bool) -> Part:
    """Bytes as letters, in GPT-2's words or in what is cut already."""
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True} | {
        "use_regex": words
    }


def split(pattern: str) -> Part:
    """Every match is a piece of its own, and so is the text between two."""
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def patterns(*cuts: str, **more: bool) -> PreTokenizer:
    return PreTokenizer((*map(split, cuts), as_bytes(words=False)), **more)


SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
NAMES = r"[^\r\n\p{L}\p{N}]?\p{L}+"
SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASED = r"[^\r\n\p{L}\p{N}]?"
PATHS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
SENTENCES = " ?[^(\\s|.,!?…。，、।۔،)]+"
LETTERS = r"\p{Lu}\p{Ll}\p{Lt}"
"""Letters with a case, of which the published file lists every range."""
HAN = "[一-龥ࠀ-一가-퟿]+"
EACH_DIGIT: Part = {"type": "Digits", "individual_digits": True}

GPT2_CUTS = PreTokenizer((as_bytes(words=True),))
NEOX_CUTS = PreTokenizer((as_bytes(words=True),), composed=True)
CODE_CUTS = PreTokenizer((EACH_DIGIT, as_bytes(words=True)))
LLAMA3_CUTS = patterns(
    rf"{SHORT}|{NAMES}|\p{{N}}{{1,3}}|{SIGNS}", whole_words=True, adds_start=True
)
QWEN2_CUTS = patterns(rf"{SHORT}|{NAMES}|\p{{N}}|{SIGNS}", composed=True)

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "default": patterns(r"[\p{P}\$\+<=>\^~\|]+", WORDS, r"\p{N}+", "[0-9][0-9][0-9]"),
    **dict.fromkeys(("gpt-2", "phi-2", "roberta-bpe", "trillion"), GPT2_CUTS),
    **dict.fromkeys(("olmo", "mpt"), NEOX_CUTS),
    **dict.fromkeys(("starcoder", "smollm", "refact", "command-r", "minerva-7b"), CODE_CUTS),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "midm-2.0"), LLAMA3_CUTS),
    **dict.fromkeys(("dbrx", "smaug-bpe"), PreTokenizer(LLAMA3_CUTS.parts)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez"), QWEN2_CUTS),
    **dict.fromkeys(("bloom", "gpt3-finnish", "poro-chat"), patterns(SENTENCES)),
    "viking": patterns(SENTENCES, r"\p{N}"),
    "tekken": patterns(
        rf"{CASED}{UPPER}*{LOWER}+|{CASED}{UPPER}+{LOWER}*|\p{{N}}|{PATHS}",
        whole_words=True,
        adds_start=True,
    ),
    "gpt-4o": patterns(
        rf"{CASED}{UPPER}*{LOWER}+{SHORT}?|{CASED}{UPPER}+{LOWER}*{SHORT}?|\p{{N}}{{1,3}}|{PATHS}"
    ),
    "deepseek-llm": patterns(
        "[\r\n]", rf"\s?[{LETTERS}]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", HAN, r"\p{N}+"
    ),
    "deepseek-coder": patterns("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN, r"\p{N}"),
    "seed-coder": patterns(
        rf"{SHORT}|{NAMES}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
"""By `tokenizer.ggml.pre`."""
OF_ARCHITECTURE = {
    "gpt2": "gpt-2",
    "gptj": "gpt-2",
    "phi2": "phi-2",
    "gptneox": "olmo",
    "bloom": "bloom",
    "starcoder": "starcoder",
    "starcoder2": "starcoder",
    "qwen2": "qwen2",
    "qwen3": "qwen2",
    "bert": "roberta-bpe",
}
"""Where an older file names none: what all published models of the architecture have."""
