"""Text to token IDs and back: tokenizers, their training, their steps, labels for the screen."""

from explorer.text.checked_text import MAX_CHARACTERS, TextError
from explorer.text.published.adopted import AdoptedTokenizer, TrainedWith, trained_with
from explorer.text.published.published_tokenizer import (
    ParentTokenizer,
    PublishedTokenizer,
    open_published,
)
from explorer.text.published.steps import MAX_STEPPED_CHARACTERS, steps
from explorer.text.token import (
    ALONE,
    CLASSIFIER,
    DECODER,
    SOURCE,
    AnyTokenizer,
    Piece,
    Token,
    TokenizerStep,
)
from explorer.text.tokenizer import (
    Tokenizer,
    byte_tokenizer,
    character_tokenizer,
    word_tokenizer,
    words_of,
)

READS_SPECIAL = (PublishedTokenizer, Tokenizer)
"""Tokenizers that can read special tokens that are written in a text; the others have none."""

__all__ = [
    "ALONE",
    "CLASSIFIER",
    "DECODER",
    "MAX_CHARACTERS",
    "MAX_STEPPED_CHARACTERS",
    "READS_SPECIAL",
    "SOURCE",
    "AdoptedTokenizer",
    "AnyTokenizer",
    "ParentTokenizer",
    "Piece",
    "PublishedTokenizer",
    "TextError",
    "Token",
    "Tokenizer",
    "TokenizerStep",
    "TrainedWith",
    "byte_tokenizer",
    "character_tokenizer",
    "open_published",
    "steps",
    "trained_with",
    "word_tokenizer",
    "words_of",
]
