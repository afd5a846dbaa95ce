"""Reverse, copy and sort: what the answers are, and where one expects to look."""

import pytest
import torch

from explorer.tasks import TASKS
from explorer.tasks.letters import LetterTask
from models.losses import IGNORE


def letters(name: str) -> LetterTask:
    task = TASKS[name]
    assert isinstance(task, LetterTask)
    return task


def test_answers(subtests: pytest.Subtests) -> None:
    for name, word, answer in [
        ("reverse", "hello", "olleh"),
        ("copy", "hello", "hello"),
        ("sort", "banana", "aaabnn"),
    ]:
        with subtests.test(name=name):
            task = letters(name)
            ids = torch.tensor([task.tokenizer.ids(word)[:-1] + [0] * (8 - len(word))])
            assert task.tokenizer.decode(task.rewritten(ids)[0].tolist()) == answer


def test_batches_have_words_of_every_length_and_end_tokens(subtests: pytest.Subtests) -> None:
    for name in ["reverse", "copy", "sort"]:
        with subtests.test(name=name):
            task = letters(name)
            batch = task.batch(0, task.training)
            source, decoder_input = batch.inputs
            lengths = (source != 0).sum(-1)
            assert set(lengths.tolist()) == set(range(2, 10))
            for row, labels, given in zip(source, batch.labels, decoder_input, strict=True):
                length = int((row != 0).sum())
                assert row[length - 1] == task.tokenizer.eos_id
                assert labels[length - 1] == task.tokenizer.eos_id
                assert (labels[length:] == IGNORE).all()
                assert given[0] == task.tokenizer.bos_id
                assert torch.equal(given[1:length], labels[: length - 1])


def test_reverse_looks_along_the_anti_diagonal() -> None:
    task = letters("reverse")
    pattern = task.pattern(task.tokenizer.encode("abc"), task.tokenizer.encode("xcba")[:4])
    assert pattern is not None
    assert pattern.nonzero().tolist() == [[0, 2], [1, 1], [2, 0]]


def test_sort_looks_at_the_letter_wherever_it_stands() -> None:
    task = letters("sort")
    pattern = task.pattern(task.tokenizer.encode("bab"), task.tokenizer.encode("xabb")[:4])
    assert pattern is not None
    assert pattern.tolist() == [[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 0]]
