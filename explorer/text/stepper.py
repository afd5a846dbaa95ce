"""How a text becomes tokens, one step at a time, as plain data.

Each step holds the whole text cut into pieces, and the last step is exactly what
the library encodes. Splitting is the library's own; the merges are done in
`merging`, and a test compares the end of both on any text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from tokenizers import PreTokenizedString, Regex
from tokenizers.pre_tokenizers import PreTokenizer, Split

from explorer.text.labels import byte_alphabet, bytes_of, readable, readable_bytes
from explorer.text.limits import checked
from explorer.text.merging import Unit, merges, ranks_of
from explorer.text.published import PublishedTokenizer
from explorer.text.step import AROUND, TYPED, Piece, Step
from explorer.text.token import AnyTokenizer
from explorer.text.tokenizer import Tokenizer

MAX_STEPPED_CHARACTERS = 1_000
"""Longest text that is taken apart step by step: the pieces grow with its square."""


def steps(tokenizer: AnyTokenizer, text: str) -> tuple[Step, ...]:
    """Every step from the typed text to the tokens that the model reads."""
    checked(text, MAX_STEPPED_CHARACTERS)
    if isinstance(tokenizer, PublishedTokenizer):
        return tokenizer.steps(text)
    if isinstance(tokenizer, Tokenizer):
        return tuple(_steps(tokenizer, text))
    return tuple(_numbers(tokenizer, text))


def _numbers(tokenizer: AnyTokenizer, text: str) -> Iterator[Step]:
    """A model without a tokenizer: its tokens are typed as their numbers."""
    yield Step(TYPED, (Piece(readable(text), 0, len(text)),))
    typed = [Piece(t.label, t.start, t.end, t.id, changed=True) for t in tokenizer.encode(text)]
    yield Step("Each word is the number of a token.", tuple(typed))


def _steps(tokenizer: Tokenizer, text: str) -> Iterator[Step]:
    yield Step(TYPED, (Piece(readable(text), 0, len(text)),))
    if tokenizer.lowercase:
        lowered = tokenizer.library.normalizer.normalize_str(text)
        piece = Piece(readable(lowered), 0, len(text), changed=lowered != text)
        yield Step("Capitals become small letters.", (piece,))
    if tokenizer.kind == "bytes":
        yield from _byte_steps(tokenizer, text)
    else:
        yield from _look_up_steps(tokenizer, text)
    tokens = tokenizer.encode(text)
    whole = tuple(Piece(t.label, t.start, t.end, t.id, t.special, t.special) for t in tokens)
    yield Step(AROUND, whole)


def _look_up_steps(tokenizer: Tokenizer, text: str) -> Iterator[Step]:
    """Split, then find each part in the vocabulary."""
    parts = _split(tokenizer, text, tokenizer.library.pre_tokenizer)
    pieces = [Piece(readable(part), *span) for part, span in parts]
    unit = "words and punctuation" if tokenizer.kind == "words" else "characters"
    yield Step(f"Split into {unit}.", tuple(pieces))

    found = [tokenizer.library.token_to_id(part) for part, _ in parts]
    ids = [tokenizer.unk_id if index is None else index for index in found]
    looked_up = tuple(
        replace(piece, label=tokenizer.label(index), id=index, changed=True)
        for piece, index in zip(pieces, ids, strict=True)
        if index is not None
    )
    unknown = found.count(None)
    note = f" {unknown} of {len(found)} are not in it and become <unk>." if unknown else ""
    yield Step(f"Look each one up in the vocabulary.{note}", looked_up)


def _byte_steps(tokenizer: Tokenizer, text: str) -> Iterator[Step]:
    """Split into words, take their bytes, merge neighbours by the rules that were learnt."""
    words = _words_of_units(tokenizer, text)
    split = tuple(
        Piece(_label("".join(u.token for u in word)), word[0].start, word[-1].end) for word in words
    )
    yield Step("Split into words; a space belongs to the word after it.", split)
    yield Step("Write each character as its bytes.", tuple(_pieces(tokenizer, words)))
    for merge in merges(words, ranks_of(tokenizer.library)):
        left, right = (_label(token) for token in merge.pair)
        pieces = tuple(_pieces(tokenizer, merge.words, made=merge.made))
        yield Step(f"Merge {left} and {right} (rule {merge.rank + 1}).", pieces, merge.rank)


def _words_of_units(tokenizer: Tokenizer, text: str) -> list[list[Unit]]:
    """Each word as its bytes, every byte knowing which character it came from."""
    letters = {byte: letter for letter, byte in byte_alphabet().items()}
    characters = _split(tokenizer, text, Split(Regex(r"[\s\S]"), "isolated"))
    units = iter(Unit(letters[byte], *span) for part, span in characters for byte in part.encode())
    words = _split(tokenizer, text, tokenizer.library.pre_tokenizer)
    return [[next(units) for _ in word] for word, _ in words]


def _pieces(
    tokenizer: Tokenizer, words: list[list[Unit]], made: frozenset[tuple[int, int]] = frozenset()
) -> Iterator[Piece]:
    for index, word in enumerate(words):
        for place, unit in enumerate(word):
            token_id = tokenizer.library.token_to_id(unit.token)
            changed = (index, place) in made
            yield Piece(_label(unit.token), unit.start, unit.end, token_id, changed=changed)


@lru_cache(maxsize=4096)
def _label(token: str) -> str:
    return readable_bytes(bytes_of(token))


def _split(
    tokenizer: Tokenizer, text: str, splitter: PreTokenizer
) -> list[tuple[str, tuple[int, int]]]:
    """The library's own parts of the text, with the characters each one came from."""
    whole = PreTokenizedString(text)
    if tokenizer.lowercase:
        whole.normalize(tokenizer.library.normalizer.normalize)
    splitter.pre_tokenize(whole)
    parts = whole.get_splits(offset_referential="original", offset_type="char")
    return [(part, span) for part, span, _ in parts]
