"""The texts that tokenizers can be trained on, and a cache of trained tokenizers."""

from functools import cache
from itertools import islice
from operator import itemgetter

from cachetools import LRUCache, cached

from explorer.inference.results_cache import size_of
from explorer.system import limits
from explorer.system.cooperative import CancellableCondition
from explorer.system.data_folders import ROOT
from explorer.tasks.translation import translation_sentences
from explorer.text.bpe_training import BPE, STATE_EVERY, MergeTraining, train_merges
from explorer.text.checked_text import checked
from explorer.text.plain_tokenizer import PlainTokenizer, tokenizer_after, unigram_tokenizer
from explorer.text.unigram import MAX_UNIGRAM_TEXT, UNIGRAM, UnigramPieces, train_unigram

PAPER = "low, lower, newest, widest"
TRANSLATION = "Sentences to translate"
README = "The README of this app"
TEXTS = (TRANSLATION, PAPER, README)
WORD_COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
"""The example of Sennrich et al. 2016."""

SIZES = (5, 10, 20, 50, 100, 200, 500, 1_000)
"""Pieces of a Unigram besides the characters of its text."""

UNIGRAMS_KEPT = 24
"""Unigrams are small, and so is the part of a text that they are trained on."""

BYTES_KEPT = 100_000_000
"""Of all merges together, with their texts; a larger training is repeated each time."""


@cache
def shipped_text(name: str) -> str:
    """A text that comes with the app."""
    if name == PAPER:
        return " ".join(word for word, times in WORD_COUNTS.items() for _ in range(times))
    if name == TRANSLATION:
        return "\n".join(islice(translation_sentences(held_out=False), 2_000))
    return (ROOT / "README.md").read_text("utf-8")


def trained_merges(text: str, most: int, algorithm: str = BPE) -> MergeTraining:
    """At most `most` merges, trained on this text; TextError says why there are none."""
    return _trained_merges(text, most, algorithm)[0]


@cached(LRUCache(BYTES_KEPT, getsizeof=itemgetter(1)), condition=CancellableCondition())
def _trained_merges(text: str, most: int, algorithm: str) -> tuple[MergeTraining, int]:
    """The merges and their size in bytes."""
    training = train_merges(checked(text, limits.TOKENIZER_CHARACTERS), most, algorithm)
    return training, size_of_training(text, training)


def size_of_training(text: str, training: MergeTraining) -> int:
    """Bytes at most: the text, and every state of its words that will be kept."""
    states = training.states[0].nbytes * (1 + len(training.merges) // STATE_EVERY)
    return size_of((text, training.tokens, training.merges)) + training.counts.nbytes + states


def unigram_sizes(text: str, most: int) -> list[int]:
    """The vocabulary sizes of the Unigrams that are shown, largest first."""
    characters = len({*text[:MAX_UNIGRAM_TEXT]} - {*" \n\t\r"}) + 2  # the space mark, the unknown
    return [characters + more for more in reversed(SIZES) if more <= most]


def unigram_pieces(text: str, size: int) -> UnigramPieces:
    """The pieces trained on the first MAX_UNIGRAM_TEXT characters."""
    return _unigram_pieces(checked(text, limits.TOKENIZER_CHARACTERS)[:MAX_UNIGRAM_TEXT], size)


@cached(LRUCache(UNIGRAMS_KEPT), condition=CancellableCondition())
def _unigram_pieces(text: str, size: int) -> UnigramPieces:
    return train_unigram(text, size)


def trained_tokenizer(text: str, algorithm: str, most: int) -> PlainTokenizer:
    """The tokenizer of all merges, or of the largest vocabulary of pieces."""
    if algorithm == UNIGRAM:
        return unigram_tokenizer(unigram_pieces(text, unigram_sizes(text, most)[0]))
    training = trained_merges(text, most, algorithm)
    return tokenizer_after(training, len(training.merges))
