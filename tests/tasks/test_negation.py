"""Negation: every label is what a reader would say."""

import pytest

from explorer.tasks import TASKS
from explorer.tasks.negation import CLASSES, Negation


def test_labels(subtests: pytest.Subtests) -> None:
    for text, label in [
        ("the food was good", "positive"),
        ("the food was not good", "negative"),
        ("the hotel is never really awful", "positive"),
        ("the film seems so dull", "negative"),
        ("the film seems not very long", "neutral"),
        ("the book is short", "neutral"),
    ]:
        with subtests.test(text=text):
            task = TASKS["negation"]
            assert isinstance(task, Negation)
            rows, labels = task.sentences.inputs[0], task.sentences.labels
            ids = task.tokenizer.ids(text)
            found = [
                (row[: len(ids)].tolist() == ids and not row[len(ids) :].any()) for row in rows
            ]
            assert CLASSES[labels[found.index(True)]] == label
            assert sum(found) == 1


def test_no_single_word_decides() -> None:
    """Each adjective and each negator meets at least two classes."""
    task = TASKS["negation"]
    assert isinstance(task, Negation)
    rows, labels = task.training_rows.inputs[0], task.training_rows.labels
    for word in ("good", "awful", "not", "never"):
        having = (rows == task.tokenizer.id_of(word)).any(-1)
        assert len(labels[having].unique()) >= 2
