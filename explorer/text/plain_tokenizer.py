"""Tokenizers as the page “Training a tokenizer” makes them, without a model's special tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import tokenizers
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, pre_tokenizers

from explorer.text.checked_text import checked
from explorer.text.library_training import (
    BPE,
    GOES_ON,
    NORMALIZER,
    SPLITTERS,
    UNIGRAM_SPLITTER,
    UNKNOWN,
    WORDPIECE,
)
from explorer.text.token import Token
from explorer.text.unigram import UNIGRAM, UnigramPieces
from explorer.text.visible_text import bytes_of, readable, readable_bytes

if TYPE_CHECKING:
    from explorer.text.bpe_training import MergeTraining

MAX_WORD = 100
"""Characters; for WordPiece a longer word is one unknown token."""

PLAIN_LABELS_KEPT = 20_000
"""One step of training labels a thousand tokens three times."""


@dataclass(frozen=True, eq=False)
class PlainTokenizer:
    """A library tokenizer trained by one algorithm, without a model's special tokens."""

    algorithm: str
    library: tokenizers.Tokenizer

    @property
    def vocab_size(self) -> int:
        return int(self.library.get_vocab_size())

    def encode(self, text: str) -> tuple[Token, ...]:
        encoding = self.library.encode(checked(text), add_special_tokens=False)
        return tuple(
            Token(number, self.label(number), *span)
            for number, span in zip(encoding.ids, encoding.offsets, strict=True)
        )

    def decode(self, ids: list[int]) -> str:
        return str(self.library.decode(ids, skip_special_tokens=False))

    def label(self, number: int) -> str:
        return visible_token(self.library.id_to_token(number) or "", self.algorithm)


@lru_cache(maxsize=PLAIN_LABELS_KEPT)
def visible_token(token: str, algorithm: str) -> str:
    """A token of one of the three algorithms, in visible characters."""
    if algorithm == BPE:
        return readable_bytes(bytes_of(token))
    return readable(token.replace("▁", " ") if algorithm == UNIGRAM else token)


def tokenizer_after(training: MergeTraining, step: int) -> PlainTokenizer:
    vocabulary = training.vocabulary(step)
    if training.algorithm == BPE:
        names = training.tokens
        merges = [(names[left], names[right]) for left, right, _ in training.merges[:step]]
        library = Library(models.BPE(vocabulary, merges))
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
        library.decoder = decoders.ByteLevel()
        return PlainTokenizer(training.algorithm, library)
    library = Library(
        models.WordPiece(
            vocabulary,
            unk_token=UNKNOWN,
            continuing_subword_prefix=GOES_ON,
            max_input_chars_per_word=MAX_WORD,
        )
    )
    library.normalizer, library.pre_tokenizer = NORMALIZER, SPLITTERS[WORDPIECE]
    library.decoder = decoders.WordPiece(GOES_ON, cleanup=False)
    return PlainTokenizer(training.algorithm, library)


def unigram_tokenizer(unigram: UnigramPieces) -> PlainTokenizer:
    library = Library(models.Unigram(list(unigram.pieces), unk_id=0, byte_fallback=False))
    library.pre_tokenizer, library.decoder = UNIGRAM_SPLITTER, decoders.Metaspace()
    return PlainTokenizer(UNIGRAM, library)
