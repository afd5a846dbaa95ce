"""Negation: every label is what a reader would say."""

from explorer.tasks import TASKS
from explorer.tasks.negation import CLASSES, Negation


def negation() -> Negation:
    task = TASKS["negation"]
    assert isinstance(task, Negation)
    return task


def test_every_sentence_has_the_label_that_it_means() -> None:
    task = negation()
    rows, labels = task.sentences.inputs[0].tolist(), task.sentences.labels
    for text, label in [
        ("the food was good", "positive"),
        ("the food was not good", "negative"),
        ("the hotel is never really awful", "positive"),
        ("the film seems so dull", "negative"),
        ("the film seems not very long", "neutral"),
        ("the book is short", "neutral"),
    ]:
        ids = task.tokenizer.ids(text)
        padded = ids + [0] * (len(rows[0]) - len(ids))
        assert rows.count(padded) == 1, text
        assert CLASSES[labels[rows.index(padded)]] == label, text


def test_no_single_word_decides() -> None:
    """Each adjective and each negator meets at least two classes."""
    task = negation()
    rows, labels = task.training_rows.inputs[0], task.training_rows.labels
    for word in ("good", "awful", "not", "never"):
        having = (rows == task.tokenizer.id_of(word)).any(-1)
        assert len(labels[having].unique()) >= 2, word
