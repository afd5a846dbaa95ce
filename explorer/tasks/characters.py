"""The reader's own text, one letter at a time."""

from __future__ import annotations

from collections import Counter

from explorer.tasks.language import LanguageTask, as_ids, split
from explorer.text import TextError, character_tokenizer
from explorer.text.limits import MAX_CORPUS_CHARACTERS, checked
from models.config import TransformerConfig
from models.training import TrainConfig

NAME = "characters"
TITLE = "Your own text, letter by letter"
EXPLANATION = (
    "The model reads a text of yours and learns which letter comes next. The last tenth of the "
    "text is kept aside to see how well it does on letters it has not read."
)
EXPECTATION = (
    "Early heads look at the letter just before; later ones at the beginning of the word or at "
    "the last time the same letters came."
)

CONTEXT = 64
MIN_CHARACTERS = 10 * (CONTEXT + 10)
MAX_ALPHABET = 400
"""Rarer characters than this many are read as `<unk>`."""


def from_text(text: str) -> LanguageTask:
    """The task of this text. TextError, in one sentence, where it cannot be learnt from."""
    text = checked(text, MAX_CORPUS_CHARACTERS)
    if len(text) < MIN_CHARACTERS:
        raise TextError(
            f"The text has {len(text):,} characters; give at least {MIN_CHARACTERS} to learn from."
        )
    parts = split(text)
    alphabet = [letter for letter, _ in Counter(parts[0]).most_common(MAX_ALPHABET)]
    tokenizer = character_tokenizer(alphabet)
    training, held_out = as_ids(tokenizer, parts, CONTEXT)
    return LanguageTask(
        name=NAME,
        title=TITLE,
        explanation=EXPLANATION,
        expectation=EXPECTATION,
        examples=(beginning(parts[0]),),
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
        training_ids=training,
        held_out_ids=held_out,
    )


def beginning(text: str) -> str:
    """The first words of the text: an example that is sure to be known."""
    words = text[: CONTEXT // 2 + 20].split()
    start = ""
    for word in words:
        if len(start) + len(word) >= CONTEXT // 2:
            break
        start = f"{start} {word}".strip()
    return start or text[: CONTEXT // 2]
