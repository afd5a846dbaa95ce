"""Tokenizers from what was learnt before one's eyes, and how each takes a sentence apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import tokenizers
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, pre_tokenizers

from explorer.text.bpe_training import BPE, GOES_ON, NORMALIZER, UNKNOWN, Learnt
from explorer.text.labels import bytes_of, readable, readable_bytes
from explorer.text.limits import checked
from explorer.text.step import TYPED, Piece, Step
from explorer.text.stepper import MAX_STEPPED_CHARACTERS, steps
from explorer.text.token import Token
from explorer.text.tokenizer import Tokenizer
from explorer.text.unigram import SPLITTER, UNIGRAM, Unigram

MOST_IN_A_WORD = 100
"""WordPiece reads a longer word as unknown."""

LABELS_KEPT = 20_000
"""A step of learning names a thousand tokens three times."""


@dataclass(frozen=True, eq=False)
class MadeHere:
    """One of the three ways, as learnt; without special tokens of a model."""

    way: str
    library: tokenizers.Tokenizer

    @property
    def vocab_size(self) -> int:
        return int(self.library.get_vocab_size())

    def encode(self, text: str) -> tuple[Token, ...]:
        found = self.library.encode(checked(text), add_special_tokens=False)
        return tuple(
            Token(number, self.label(number), *span)
            for number, span in zip(found.ids, found.offsets, strict=True)
        )

    def decode(self, ids: list[int]) -> str:
        return str(self.library.decode(ids, skip_special_tokens=False))

    def label(self, number: int) -> str:
        return label_of(self.library.id_to_token(number) or "", self.way)


@lru_cache(maxsize=LABELS_KEPT)
def label_of(token: str, way: str) -> str:
    """A token of one of the three ways with everything visible."""
    if way == BPE:
        return readable_bytes(bytes_of(token))
    return readable(token.replace("▁", " ") if way == UNIGRAM else token)


def after(learnt: Learnt, step: int) -> MadeHere:
    """What reads a text by the first so many rules."""
    vocabulary = learnt.vocabulary(step)
    if learnt.way == BPE:
        names = learnt.tokens
        merges = [(names[left], names[right]) for left, right, _ in learnt.rules[:step]]
        library = Library(models.BPE(vocabulary, merges))
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
        library.decoder = decoders.ByteLevel()
        return MadeHere(learnt.way, library)
    library = Library(
        models.WordPiece(
            vocabulary,
            unk_token=UNKNOWN,
            continuing_subword_prefix=GOES_ON,
            max_input_chars_per_word=MOST_IN_A_WORD,
        )
    )
    library.normalizer, library.pre_tokenizer = NORMALIZER, pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece(GOES_ON, cleanup=False)
    return MadeHere(learnt.way, library)


def of_pieces(unigram: Unigram) -> MadeHere:
    """What reads a text by pieces and their probabilities."""
    library = Library(models.Unigram(list(unigram.pieces), unk_id=0, byte_fallback=False))
    library.pre_tokenizer, library.decoder = SPLITTER, decoders.Metaspace()
    return MadeHere(UNIGRAM, library)


def encoding(tokenizer: MadeHere, text: str) -> tuple[Step, ...]:
    """From the text to its tokens: the lowest rule first, or the longest piece first."""
    if tokenizer.way == BPE:
        return steps(Tokenizer(tokenizer.library), text)[:-1]  # there is no special token to add
    checked(text, MAX_STEPPED_CHARACTERS)
    return tuple(_longest_first(tokenizer, text))


def _longest_first(tokenizer: MadeHere, text: str) -> Iterator[Step]:
    """WordPiece: each word from its beginning, always the longest piece that is there."""
    yield Step(TYPED, (Piece(readable(text), 0, len(text)),))
    whole = tokenizers.PreTokenizedString(text)
    whole.normalize(NORMALIZER.normalize)
    pre_tokenizers.BertPreTokenizer().pre_tokenize(whole)
    words = [(word, *span) for word, span, _ in whole.get_splits("original", "char")]
    waiting = [Piece(readable(word), start, end) for word, start, end in words]
    yield Step("Split into words and punctuation; the spaces are lost here.", tuple(waiting))
    tokens = list(tokenizer.encode(text))
    done: list[Piece] = []
    for place, (word, start, end) in enumerate(words):
        made = [token for token in tokens if start <= token.start and token.end <= end]
        for token in made:
            done = [Piece(p.label, p.start, p.end, p.id) for p in done]
            done.append(Piece(token.label, token.start, token.end, token.id, changed=True))
            left = text[token.end : end]
            rest = [Piece(GOES_ON + readable(left), token.end, end)] if left else []
            yield Step(_said(token, left, len(word)), (*done, *rest, *waiting[place + 1 :]))


def _said(token: Token, left: str, length: int) -> str:
    if token.label == UNKNOWN and length > MOST_IN_A_WORD:
        return (
            f"The word has {length:,} characters; of more than {MOST_IN_A_WORD} it becomes "
            f"{UNKNOWN} unread."
        )
    if token.label == UNKNOWN:
        return f"A character is not in the vocabulary, so the whole word becomes {UNKNOWN}."
    goes_on = f"; go on with {GOES_ON}{readable(left)}" if left else ""
    return f"The longest piece that begins here is {token.label}{goes_on}."
