"""The reader's own text, one letter at a time."""

from __future__ import annotations

from collections import Counter

from explorer.app import limits
from explorer.tasks.language import LanguageTask, split_text, training_and_held_out_ids
from explorer.text import TextError, character_tokenizer
from explorer.text.checked_text import checked
from models.config import TransformerConfig
from models.training import TrainConfig

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

CONTEXT = 64
MIN_CHARACTERS = 10 * (CONTEXT + 10)
MAX_ALPHABET = 400
"""Rarer characters than this many are read as `<unk>`."""


def characters_from_text(text: str) -> LanguageTask:
    """The task of this text. TextError, in one sentence, where it is too short."""
    text = checked(text, limits.CORPUS_CHARACTERS)
    if len(text) < MIN_CHARACTERS:
        raise TextError(
            f"The text has {len(text):,} characters; give at least {MIN_CHARACTERS} to learn from."
        )
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
        model=TransformerConfig(
            kind="decoder",
            vocab_size=tokenizer.vocab_size,
            d_model=64,
            n_layers=2,
            n_heads=4,
            d_ff=256,
            max_len=CONTEXT,
            activation="gelu",
            pad_id=tokenizer.pad_id,
            bos_id=tokenizer.bos_id,
        ),
        training=TrainConfig(
            steps=2000, batch_size=32, lr=3e-3, warmup=100, schedule="cosine", weight_decay=0.1
        ),
        goal=2.0,
        held_out_texts=parts[1:],
        training_ids=training,
        held_out_ids=held_out,
    )


def first_words(text: str) -> str:
    """The first words of the text: an example in its own alphabet."""
    words = text[: CONTEXT // 2 + 20].split()
    start = ""
    for word in words:
        if len(start) + len(word) >= CONTEXT // 2:
            break
        start = f"{start} {word}".strip()
    return start or text[: CONTEXT // 2]
