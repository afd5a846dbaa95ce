"""The reader's own text, subword by subword: byte-level BPE trained on it, or another tokenizer."""

from __future__ import annotations

from explorer.app import limits
from explorer.tasks.characters import first_words
from explorer.tasks.language import LanguageTask, split_text, training_and_held_out_ids
from explorer.tasks.own_tokenizer import SUBWORDS, tokenizer_for
from explorer.text import TextError, TrainedWith
from explorer.text.checked_text import checked
from models.config import TransformerConfig
from models.training import TrainConfig

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

CONTEXT = 64
MIN_CHARACTERS = 5_000


def subwords_from_text(text: str, tokenizer: str | TrainedWith | None = None) -> LanguageTask:
    """The task of this text. TextError, in one sentence, where it is too short."""
    text = checked(text, limits.CORPUS_CHARACTERS)
    if len(text) < MIN_CHARACTERS:
        raise TextError(
            f"The text has {len(text):,} characters; a language model of subwords needs at least "
            f"{MIN_CHARACTERS:,}."
        )
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
        model=TransformerConfig(
            kind="decoder",
            vocab_size=reads.vocab_size,
            d_model=64,
            n_layers=2,
            n_heads=4,
            d_ff=256,
            max_len=CONTEXT,
            activation="gelu",
            dropout=0.1,
            pad_id=reads.pad_id,
            bos_id=reads.bos_id,
        ),
        training=TrainConfig(
            steps=2000, batch_size=32, lr=3e-3, warmup=100, schedule="cosine", weight_decay=0.1
        ),
        goal=4.0,
        held_out_texts=parts[1:],
        training_ids=training,
        held_out_ids=held_out,
    )
