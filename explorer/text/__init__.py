"""From what a person types to what a model reads, and every step between the two."""

from explorer.text.build import byte_tokenizer, character_tokenizer, word_tokenizer, words_of
from explorer.text.limits import MAX_CHARACTERS, TextError
from explorer.text.special import CLASSIFIER, DECODER, SOURCE
from explorer.text.stepper import MAX_STEPPED_CHARACTERS, Piece, Step, steps
from explorer.text.tokenizer import Token, Tokenizer

__all__ = [
    "CLASSIFIER",
    "DECODER",
    "MAX_CHARACTERS",
    "MAX_STEPPED_CHARACTERS",
    "SOURCE",
    "Piece",
    "Step",
    "TextError",
    "Token",
    "Tokenizer",
    "byte_tokenizer",
    "character_tokenizer",
    "steps",
    "word_tokenizer",
    "words_of",
]
