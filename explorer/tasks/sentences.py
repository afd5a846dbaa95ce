"""The reader's own sentences, each with a class: a table with the columns text and label."""

from dataclasses import replace

from explorer.tasks.own_tokenizer import WORDS, typical, unseen
from explorer.tasks.reviews import (
    MIN_SENTENCES,
    ReviewTask,
    from_labelled,
    labelled_batch,
    read_table,
    split_reviews,
)
from explorer.text import TextError, TrainedWith

NAME = "sentences"
TITLE = "Your own labelled sentences"
EXPLANATION = (
    f"The model reads a sentence of your table, which has at least {MIN_SENTENCES}, and says which "
    "of your labels it has. A fifth of them, at most 500, is kept aside to see how well it does on "
    "those it has not read."
)
EXPECTATION = "Tokens attend to the words that tell the labels apart, and little to all others."


def sentences_from_csv(table: str, tokenizer: str | TrainedWith | None = None) -> ReviewTask:
    """The task of this table. TextError, in one sentence, where nothing can be learned from it."""
    labelled, classes = read_table(table)
    training, held_out = split_reviews(labelled)
    task = from_labelled(training, held_out, classes, tokenizer or WORDS)
    held_out = unseen(task.tokenizer, held_out, {text for text, _ in training})
    if not held_out:
        raise TextError(
            "With this tokenizer every held-out sentence reads like one that is trained on: choose "
            "another tokenizer, or give sentences that differ more."
        )
    return replace(
        task,
        name=NAME,
        title=TITLE,
        explanation=EXPLANATION,
        expectation=EXPECTATION,
        examples=typical([text for text, _ in training]),
        held_out=f"{len(held_out):,} sentences, each label in its share",
        held_out_texts=tuple(text for text, _ in held_out),
        held_out_rows=labelled_batch(task.tokenizer, held_out),
    )
