"""The reader's own text, one letter at a time."""

from __future__ import annotations

from collections import Counter

from explorer.tasks.language import (
    CONTEXT,
    LanguageTask,
    checked_corpus,
    decoder_reading,
    first_words,
    split_text,
    training_and_held_out_ids,
    training_of,
)
from explorer.text import character_tokenizer

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
    text = checked_corpus(text, MIN_CHARACTERS)
    parts = split_text(text)
    alphabet = [letter for letter, _ in Counter(parts[0]).most_common(MAX_ALPHABET)]
    tokenizer = character_tokenizer(alphabet)
    training, held_out = training_and_held_out_ids(tokenizer, parts, CONTEXT)
    return LanguageTask(
        name=NAME,
        title=TITLE,
        explanation=EXPLANATION,
        expectation=EXPECTATION,
        examples=(first_words(parts[0]),),
        tokenizer=tokenizer,
        model=decoder_reading(tokenizer, d_model=64, dropout=0.0),
        training=training_of(steps=2000, warmup=100),
        goal=2.0,
        held_out_texts=parts[1:],
        training_ids=training,
        held_out_ids=held_out,
    )
