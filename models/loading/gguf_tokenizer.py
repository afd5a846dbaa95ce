"""The tokenizer in a GGUF file as the tokenizer.json and tokenizer_config.json of a folder.

The file holds a vocabulary with merges or scores, and the name of the rules that cut a text
first; they are translated into the terms of the `tokenizers` library, as the published files
of these models are written. Nothing is encoded here: the texts are opened like those of any
other folder. Source: llama.cpp's src/llama-vocab.cpp; published files.
"""

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

from models.loading.gguf_header import GgufHeader
from models.loading.gguf_pretokenizers import OF_ARCHITECTURE, PRE_TOKENIZERS, PreTokenizer
from models.loading.gguf_vocabulary import (
    BYTE,
    CONTROL,
    KIND,
    NO_KIND,
    ROLE_KEYS,
    UNKNOWN,
    USER_DEFINED,
    Vocabulary,
)
from models.loading.safe_files import TOKENIZER, TOKENIZER_CONFIG, quoted

WORD_START = "▁"
"""The character that stands for a space in sentencepiece."""
MOST_LETTERS, LONGEST_MERGED = 8_000_000, 512
"""Bounds of the tokens that merges are made from, in letters: time grows with them."""
USUAL_ROLES = {
    "llama": {"bos": 1, "eos": 2, "unk": 0},
    "t5": {"eos": 1, "unk": 2, "pad": 0},
    "bert": {"cls": 101, "unk": 100, "sep": 102, "pad": 0, "mask": 103},
}
"""The tokens of some roles by `tokenizer.ggml.model`, where a file does not name them."""
Part = dict[str, Any]


def tokenizer_files(header: GgufHeader) -> dict[str, str]:
    """The texts of tokenizer.json and tokenizer_config.json by their names; none if it has none.

    CheckpointError names what is not supported. Time and memory grow with the vocabulary: 0.2 s
    for 50,000 tokens, 3 s for 256,000 whose merges follow from scores.
    """
    if header.values.get(KIND, NO_KIND[0]) in NO_KIND:
        return {}
    vocabulary = Vocabulary(header)
    kind = vocabulary.name("model", "")
    if kind not in TOKENIZER_KINDS:
        raise vocabulary.fault(f"has a tokenizer of the kind {quoted(kind)}, which is not known")
    defaults = USUAL_ROLES.get(kind, {})
    roles = {role: vocabulary.role(role, defaults.get(role)) for role in ROLE_KEYS}
    if kind == "bert" and roles["cls"] is None:
        roles["cls"] = roles["bos"]
    stored = {"version": "1.0", "truncation": None, "padding": None} | TOKENIZER_KINDS[kind](
        vocabulary, roles
    )
    settings = tokenizer_config(vocabulary, roles)
    texts = {TOKENIZER: stored, TOKENIZER_CONFIG: settings}
    return {name: json.dumps(values, ensure_ascii=False) for name, values in texts.items()}


def tokenizer_config(vocabulary: Vocabulary, roles: "Roles") -> Part:
    """The special tokens by their roles, and the chat template."""
    values: Part = {"tokenizer_class": "PreTrainedTokenizerFast"}
    for role, number in roles.items():
        values[f"{role}_token"] = None if number is None else vocabulary.tokens[number]
    if (template := vocabulary.template()) is not None:
        values["chat_template"] = template
    return values


Roles = dict[str, int | None]


def byte_level(vocabulary: Vocabulary, roles: Roles) -> Part:
    """Byte-level BPE; `tokenizer.ggml.pre` names the rules that cut a text into words."""
    cut = pre_tokenizer(vocabulary)
    vocabulary.check_merges(vocabulary.count("merges"))
    merges = [pair(merge) for merge in vocabulary.texts("merges")]
    if not all(merges):
        raise vocabulary.fault("has a merge that is no pair of tokens")
    is_bert = vocabulary.architecture == "bert"
    ends = bert_ends(roles, apart=2) if is_bert else usual_ends(vocabulary, roles, cut.adds_start)
    return {
        "added_tokens": added_tokens(vocabulary),
        "normalizer": {"type": "NFC"} if cut.composed else None,
        "pre_tokenizer": sequence("pretokenizers", cut.parts),
        "post_processor": template(vocabulary, ends),
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": bpe(vocabulary.ids, merges, ignore_merges=cut.whole_words),
    }


def pre_tokenizer(vocabulary: Vocabulary) -> PreTokenizer:
    usual = OF_ARCHITECTURE.get(str(vocabulary.architecture), "default")
    name = vocabulary.name("pre", usual)
    if name not in PRE_TOKENIZERS:
        raise vocabulary.fault(f"cuts texts in the way {quoted(name)}, which is not known")
    return PRE_TOKENIZERS[name]


def pair(merge: str) -> list[str]:
    """The two tokens of a merge; a token may begin with a space. Empty if there are not two."""
    at = merge.find(" ", 1)
    return [merge[:at], merge[at + 1 :]] if 0 < at < len(merge) - 1 else []


def sentence_pieces(vocabulary: Vocabulary, roles: Roles) -> Part:
    """Sentencepiece's BPE, which joins what makes the token of the highest score.

    The library joins by a list of pairs instead, so it gets one in the order of the scores.
    """
    unknown = roles["unk"]
    prefix = vocabulary.flag("add_space_prefix", True)
    spaces: Part = {"type": "Replace", "pattern": {"String": " "}, "content": WORD_START}
    start: Part = {"type": "Replace", "pattern": {"Regex": _before_a_text(vocabulary)}}
    start["content"] = WORD_START
    strip: Part = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    decoders: list[Part] = [
        {"type": "Replace", "pattern": {"String": WORD_START}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    return {
        "added_tokens": added_tokens(vocabulary, normalized=True),
        "normalizer": sequence("normalizers", [start, spaces] if prefix else [spaces]),
        "pre_tokenizer": None,
        "post_processor": template(vocabulary, usual_ends(vocabulary, roles, start=True)),
        "decoder": sequence("decoders", [*decoders, strip] if prefix else decoders),
        "model": bpe(
            vocabulary.ids,
            merges_by_score(vocabulary),
            unk_token=None if unknown is None else vocabulary.tokens[unknown],
            fuse_unk=True,
            byte_fallback=BYTE in vocabulary.types,
        ),
    }


def _before_a_text(vocabulary: Vocabulary) -> str:
    """The place before a text, but not before a user-defined token alone.

    The library normalizes these tokens too before it looks for them: it would look for them
    with the space that is put before a text.
    """
    kinds = zip(vocabulary.tokens, vocabulary.types, strict=True)
    alone = [re.escape(token) for token, kind in kinds if kind == USER_DEFINED]
    return rf"\A(?!\z|(?:{'|'.join(alone)})\z)" if alone else r"\A(?!\z)"


def merges_by_score(vocabulary: Vocabulary) -> list[list[str]]:
    """Every pair of tokens that joins to a third, the highest score first."""
    tokens, ids, scores = vocabulary.tokens, vocabulary.ids, vocabulary.scores
    apart = (CONTROL, UNKNOWN, BYTE)
    joined = [i for i, kind in enumerate(vocabulary.types) if kind not in apart]
    lengths = [len(tokens[i]) for i in joined]
    if sum(lengths) > MOST_LETTERS or max(lengths, default=0) > LONGEST_MERGED:
        raise vocabulary.fault("has more or longer tokens than any vocabulary")
    merges = []
    for i in sorted(joined, key=lambda i: -scores[i]):
        token = tokens[i]
        parts = ((token[:at], token[at:]) for at in range(1, len(token)))
        pairs = [(ids[left], ids[right]) for left, right in parts if left in ids and right in ids]
        merges += [[tokens[left], tokens[right]] for left, right in sorted(pairs)]
        vocabulary.check_merges(len(merges))
    return merges


def unigram(vocabulary: Vocabulary, roles: Roles) -> Part:
    """Sentencepiece's Unigram, whose texts its own table of characters normalizes first."""
    around = vocabulary.flag("add_space_prefix", True)
    metaspace: Part = {"type": "Metaspace", "replacement": WORD_START, "split": True} | {
        "prepend_scheme": "always" if around else "never"
    }
    words: list[Part] = [{"type": "WhitespaceSplit"}, metaspace]
    if not vocabulary.flag("remove_extra_whitespaces", True):
        del words[0]
    table = vocabulary.bytes("precompiled_charsmap")
    normalizer = {"type": "Precompiled", "precompiled_charsmap": b64encode(table).decode()}
    if vocabulary.architecture == "bert":
        ends = bert_ends(roles, apart=2)
    else:
        ends = usual_ends(vocabulary, roles, end=True)
    return {
        "added_tokens": added_tokens(vocabulary),
        "normalizer": normalizer if table else None,
        "pre_tokenizer": sequence("pretokenizers", words),
        "post_processor": template(vocabulary, ends),
        "decoder": metaspace,
        "model": {
            "type": "Unigram",
            "unk_id": roles["unk"],
            "vocab": list(zip(vocabulary.ids, vocabulary.scores, strict=True)),
            "byte_fallback": BYTE in vocabulary.types,
        },
    }


def word_pieces(vocabulary: Vocabulary, roles: Roles) -> Part:
    """BERT's WordPiece. The file marks what begins a word, the library what goes on.

    Older files do not say whether a model reads capitals: one whose vocabulary has none does not.
    """
    tokens = [
        token if kind in (CONTROL, UNKNOWN) else begun(token)
        for token, kind in zip(vocabulary.tokens, vocabulary.types, strict=True)
    ]
    ordinary = (t for t, kind in zip(tokens, vocabulary.types, strict=True) if kind != CONTROL)
    cased = any(token != token.lower() for token in ordinary if not token.startswith("["))
    unknown = roles["unk"]
    return {
        "added_tokens": added_tokens(vocabulary, tokens),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": vocabulary.flag("normalizer.strip_accents", None),
            "lowercase": vocabulary.flag("normalizer.lowercase", not cased),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": template(vocabulary, bert_ends(roles)),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]" if unknown is None else tokens[unknown],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary.numbered(tokens),
        },
    }


def begun(token: str) -> str:
    """A WordPiece as the library writes it."""
    return token[1:] if token.startswith(WORD_START) else f"##{token}"


TOKENIZER_KINDS = {"gpt2": byte_level, "llama": sentence_pieces, "t5": unigram, "bert": word_pieces}
"""By `tokenizer.ggml.model`."""


def bpe(ids: dict[str, int], merges: list[list[str]], **more: Any) -> Part:
    usual = {"unk_token": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    nothing = {"dropout": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
    return {"type": "BPE"} | nothing | usual | more | {"vocab": ids, "merges": merges}


def sequence(name: str, parts: Sequence[Part]) -> Part:
    """Several parts in a row, under the library's name for them."""
    return parts[0] if len(parts) == 1 else {"type": "Sequence", name: list(parts)}


def added_tokens(
    vocabulary: Vocabulary, tokens: Sequence[str] | None = None, *, normalized: bool = False
) -> list[Part]:
    """The tokens that are found in a text before it is cut, or only put around it.

    `tokens` are their texts where the library has others than the file. `normalized`: those
    that are not special are found once spaces are written as in the model.
    """
    texts = vocabulary.tokens if tokens is None else tokens
    return [
        {
            "id": i,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": normalized and kind == USER_DEFINED,
            "special": kind != USER_DEFINED,
        }
        for i, (token, kind) in enumerate(zip(texts, vocabulary.types, strict=True))
        if kind in (CONTROL, UNKNOWN, USER_DEFINED)
    ]


class Ends(NamedTuple):
    """What stands before a text, between two and after the last; the second text's segment."""

    before: list[int | None]
    between: list[int | None]
    after: list[int | None]
    second: int = 1


def usual_ends(
    vocabulary: Vocabulary, roles: Roles, start: bool = False, end: bool = False
) -> Ends:
    """The start and end tokens around each text, where the file asks for them or says nothing."""
    before = [roles["bos"]] if vocabulary.flag("add_bos_token", start) else []
    after = [roles["eos"]] if vocabulary.flag("add_eos_token", end) else []
    return Ends(before, [*after, *before], after)


def bert_ends(roles: Roles, apart: int = 1) -> Ends:
    """BERT's and RoBERTa's: one token before all, others between and after."""
    start = roles["bos"] if roles["cls"] is None else roles["cls"]
    end = roles["eos"] if roles["sep"] is None else roles["sep"]
    return Ends([start], [end] * apart, [end], second=1 if apart == 1 else 0)


def template(vocabulary: Vocabulary, ends: Ends) -> Part | None:
    """The library's description of the tokens around a text and a pair of texts."""
    before, between, after, second = ends
    around = {number for number in (*before, *between, *after) if number is not None}
    if not around:
        return None

    def special(numbers: list[int | None], segment: int) -> list[Part]:
        names = [vocabulary.tokens[number] for number in numbers if number is not None]
        return [{"SpecialToken": {"id": name, "type_id": segment}} for name in names]

    def text(name: str, segment: int) -> Part:
        return {"Sequence": {"id": name, "type_id": segment}}

    names = {vocabulary.tokens[number]: number for number in sorted(around)}
    first = [*special(before, 0), text("A", 0)]
    return {
        "type": "TemplateProcessing",
        "single": [*first, *special(after, 0)],
        "pair": [*first, *special(between, 0), text("B", second), *special(after, second)],
        "special_tokens": {
            name: {"id": name, "ids": [number], "tokens": [name]} for name, number in names.items()
        },
    }
