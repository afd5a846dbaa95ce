"""The reader's own text, one letter at a time."""

from collections import Counter

from explorer.tasks.language import CONTEXT, LanguageTask, own_text_task
from explorer.text import Tokenizer, character_tokenizer

NAME = "characters"
TITLE = "Your own text, letter by letter"
EXPLANATION = (
    "The model reads a text of yours and learns which letter comes next. The last tenth of the "
    "text is kept aside to see how well it does on letters it has not read."
)
EXPECTATION = (
    "Early heads attend to the previous letter; later ones to the beginning of the word or to "
    "the last occurrence of the same letters."
)

MIN_CHARACTERS = 10 * (CONTEXT + 10)
MAX_ALPHABET = 400
"""Rarer characters than this many are read as `<unk>`."""


def characters_from_text(text: str) -> LanguageTask:
    """The task of this text. TextError, in one sentence, where it is too short."""
    return own_text_task(
        text,
        MIN_CHARACTERS,
        _letters_of,
        dropout=0.0,
        name=NAME,
        title=TITLE,
        explanation=EXPLANATION,
        expectation=EXPECTATION,
        goal=2.0,
    )


def _letters_of(text: str) -> Tokenizer:
    return character_tokenizer([letter for letter, _ in Counter(text).most_common(MAX_ALPHABET)])
