"""A small language model of a whole book: byte-level BPE, so it reads any sentence."""

from explorer.tasks.language import (
    CONTEXT,
    LanguageTask,
    checked_corpus,
    decoder_reading,
    split_text,
    training_and_held_out_ids,
    training_of,
)
from explorer.text import byte_tokenizer

NAME = "shakespeare"
TITLE = "Shakespeare, subword by subword"
EXPLANATION = (
    "The model reads Shakespeare's plays in subwords of its own vocabulary of 1,024 tokens and "
    "learns what comes next. It can read any text, since unknown characters are read as bytes."
)
EXPECTATION = (
    "Some heads attend to the previous token, one to the last line break, and in a speaker's "
    "name some attend to its other tokens."
)
EXAMPLES = (
    "To be, or not to be: that is the question",
    "ROMEO:\nBut, soft! what light through yonder window breaks?",
    "What say you, my lord? I say that I love you",
    "Dog is crossing the street because it saw the kitchen",
)

VOCABULARY = 1024
MIN_CORPUS = 20_000


def shakespeare_from_text(text: str) -> LanguageTask:
    """The task of this text. The tokenizer is trained on its training part only."""
    text = checked_corpus(text, MIN_CORPUS)
    parts = split_text(text)
    tokenizer = byte_tokenizer(parts[0], VOCABULARY)
    training, held_out = training_and_held_out_ids(tokenizer, parts, CONTEXT)
    return LanguageTask(
        name=NAME,
        title=TITLE,
        explanation=EXPLANATION,
        expectation=EXPECTATION,
        examples=EXAMPLES,
        tokenizer=tokenizer,
        model=decoder_reading(tokenizer, d_model=128, dropout=0.1).replace(
            d_ff=341, positions="rotary", activation="silu", gated=True
        ),
        training=training_of(steps=3200, warmup=200),
        goal=3.75,
        training_ids=training,
        held_out_ids=held_out,
    )
