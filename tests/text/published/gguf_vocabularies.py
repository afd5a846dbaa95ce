"""A published tokenizer as llama.cpp's conversion scripts write it into a GGUF file; many texts."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sentencepiece
from gguf import GGUFWriter, TokenType
from sentencepiece import sentencepiece_model_pb2 as stored

SCRIPTS = (
    *("the cat sat on a mat and it's 12345 ok ".split() * 6),
    *("Der Frosch quakt größer naïve café É e\u0301 Å ﬁne".split() * 2),
    *("東京は大きい カタカナ 中文分词 한국어 שלום العربية हिन्दी ไทย Ελληνικά русский".split()),
    *("🙂 👩\u200d👧 🏳\ufe0f\u200d🌈 ½ ① ㎏ 1,000.50 0x1F 3²  ४२".split()),
    *("!! ... ?! -- (a) [b] {c} <d> $5 #1 @x a_b C++ don't WE'LL I'M 'tis".split()),
)
SPACES = (" ", " ", " ", " ", "", "", "  ", "   ")
GAPS = (*SPACES, "\n", "\n\n", "\t", " \n ", "\r\n", "\u00a0", "\u3000")


def many_texts(count: int, special: Iterable[str] = ()) -> list[str]:
    """Words of many scripts, signs, numbers and spaces in any order, the same ones every time."""
    draw = random.Random(16)
    words = [*SCRIPTS, *special]
    texts = ["", " ", "\n", "a", " a", "a "]
    while len(texts) < count:
        parts = draw.choices(words, k=draw.randint(1, 9))
        if draw.random() < 0.2:
            parts.append("".join(draw.choices("abcdefgh XYZ0123\n.,'", k=draw.randint(1, 30))))
        texts.append("".join(word + draw.choice(GAPS) for word in parts))
    return texts[:count]


ROLES = {name: name for name in ("bos", "eos", "cls", "mask")}
ROLES |= {"unk": "unknown", "pad": "padding", "sep": "seperator"}
"""The roles of special tokens, and what a file calls them."""


def write(
    writer: GGUFWriter,
    tokenizer: Any,
    kind: str,
    tokens: list[str],
    types: list[int],
    pre: str = "default",
) -> None:
    """The vocabulary, and what `SpecialVocab` adds."""
    writer.add_tokenizer_model(kind)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    for role, key in ROLES.items():
        if (number := getattr(tokenizer, f"{role}_token_id")) is not None:
            writer.add_uint32(f"tokenizer.ggml.{key}_token_id", number)


def typed(tokenizer: Any) -> tuple[list[str], list[int]]:
    """`get_vocab_base`: every token with its type."""
    added = tokenizer.added_tokens_decoder
    names = {number: token for token, number in tokenizer.get_vocab().items()}
    tokens, types = [], []
    for number in range(max(names) + 1):
        kind = TokenType.NORMAL
        if number not in names:
            kind = TokenType.UNUSED
        elif number in added:
            kind = TokenType.CONTROL if added[number].special else TokenType.USER_DEFINED
        tokens.append(names.get(number, f"[PAD{number}]"))
        types.append(int(kind))
    return tokens, types


def byte_level(writer: GGUFWriter, tokenizer: Any, _: Path, pre: str) -> None:
    """`_set_vocab_gpt2`."""
    tokens, types = typed(tokenizer)
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    write(writer, tokenizer, "gpt2", tokens, types, pre)
    writer.add_token_merges([" ".join(merge) for merge in merges])


def word_pieces(writer: GGUFWriter, tokenizer: Any, _: Path) -> None:
    """`BertModel.set_vocab`, which marks what begins a word."""

    def phantom(token: str, kind: int) -> str:
        if kind == TokenType.CONTROL:
            return token
        return token[2:] if token.startswith("##") else "▁" + token

    tokens, types = typed(tokenizer)
    write(writer, tokenizer, "bert", list(map(phantom, tokens, types)), types)
    writer.add_bool("tokenizer.ggml.normalizer.lowercase", tokenizer.do_lower_case)


def pieces(writer: GGUFWriter, tokenizer: Any, folder: Path, name: str, kind: str) -> None:
    """`_create_vocab_sentencepiece`, `T5Model.set_vocab` and `_xlmroberta_set_vocab`."""
    model: Any = stored.ModelProto()  # type: ignore[attr-defined]
    model.ParseFromString((folder / name).read_bytes())
    library = sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
    tokens = [library.id_to_piece(i) for i in range(len(library))]
    scores = [library.get_score(i) for i in range(len(library))]
    types = [int(piece.type) for piece in model.pieces]
    if name == "sentencepiece.bpe.model":
        tokens = ["<s>", "<pad>", "</s>", "<unk>", *tokens[3:]]
        scores = [0.0] * 4 + scores[3:]
        types = [int(TokenType.CONTROL)] * 3 + [int(TokenType.UNKNOWN), *types[3:]]
    for token, number in tokenizer.get_added_vocab().items():
        if number == len(tokens):
            tokens.append(token)
            scores.append(-1000.0)
            types.append(int(TokenType.CONTROL))
        elif number < len(tokens):
            assert tokens[number] == token
    write(writer, tokenizer, kind, tokens, types)
    writer.add_token_scores(scores)
    spec = model.normalizer_spec
    writer.add_add_space_prefix(spec.add_dummy_prefix)
    writer.add_remove_extra_whitespaces(spec.remove_extra_whitespaces)
    if kind == "t5":
        writer.add_precompiled_charsmap(spec.precompiled_charsmap)
