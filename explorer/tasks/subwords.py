"""The reader's own text, subword by subword: byte-level BPE trained on it, or another tokenizer."""

from __future__ import annotations

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
from explorer.tasks.own_tokenizer import SUBWORDS, tokenizer_for
from explorer.text import TrainedWith

NAME = "subwords"
TITLE = "Your own text, subword by subword"
EXPLANATION = (
    "The model reads a text of yours in subwords, of a vocabulary that is trained on it or comes "
    "with another model, and learns which comes next. The last tenth of the text is kept aside."
)
EXPECTATION = (
    "Some heads attend to the previous token, others to an earlier copy of the same word or to "
    "what came after it."
)

MIN_CHARACTERS = 5_000


def subwords_from_text(text: str, tokenizer: str | TrainedWith | None = None) -> LanguageTask:
    """The task of this text. TextError, in one sentence, where it is too short."""
    text = checked_corpus(text, MIN_CHARACTERS)
    parts = split_text(text)
    reads = tokenizer_for(tokenizer or SUBWORDS, parts[0])
    training, held_out = training_and_held_out_ids(reads, parts, CONTEXT)
    return LanguageTask(
        name=NAME,
        title=TITLE,
        explanation=EXPLANATION,
        expectation=EXPECTATION,
        examples=(first_words(parts[0]),),
        tokenizer=reads,
        model=decoder_reading(reads, d_model=64, dropout=0.1),
        training=training_of(steps=2000, warmup=100),
        goal=4.0,
        held_out_texts=parts[1:],
        training_ids=training,
        held_out_ids=held_out,
    )
