"""A small language model of a whole book: byte-level BPE, so it reads any sentence."""

from __future__ import annotations

from explorer.app import limits
from explorer.tasks.language import LanguageTask, split_text, training_and_held_out_ids
from explorer.text import TextError, byte_tokenizer
from explorer.text.checked_text import checked
from models.config import TransformerConfig
from models.training import TrainConfig

NAME = "shakespeare"
TITLE = "Shakespeare, subword by subword"
EXPLANATION = (
    "The model reads Shakespeare's plays in subwords of its own vocabulary of 1,024 tokens and "
    "learns what comes next. It can read any text, since unknown characters are read as bytes."
)
EXPECTATION = (
    "Some heads attend to the previous token, some to the start of the line, some to the "
    "speaker's name or to an earlier copy of the same word."
)
EXAMPLES = (
    "To be, or not to be: that is the question",
    "ROMEO:\nBut, soft! what light through yonder window breaks?",
    "What say you, my lord? I say that I love you",
    "Dog is crossing the street because it saw the kitchen",
)

VOCABULARY = 1024
CONTEXT = 64
MIN_CHARACTERS = 20_000


def shakespeare_from_text(text: str) -> LanguageTask:
    """The task of this text. The tokenizer is trained on its training part only."""
    text = checked(text, limits.CORPUS_CHARACTERS)
    if len(text) < MIN_CHARACTERS:
        raise TextError(
            f"The text has {len(text):,} characters; a language model of words needs at least "
            f"{MIN_CHARACTERS:,}."
        )
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
        model=TransformerConfig(
            kind="decoder",
            vocab_size=tokenizer.vocab_size,
            d_model=128,
            n_layers=2,
            n_heads=4,
            d_ff=512,
            max_len=CONTEXT,
            activation="gelu",
            dropout=0.1,
            pad_id=tokenizer.pad_id,
            bos_id=tokenizer.bos_id,
        ),
        training=TrainConfig(
            steps=3200, batch_size=32, lr=3e-3, warmup=200, schedule="cosine", weight_decay=0.1
        ),
        goal=3.75,
        training_ids=training,
        held_out_ids=held_out,
    )
