"""Reverse, copy and sort: what the answers are, and where one expects to look."""

import torch

from explorer.tasks import TASKS
from explorer.tasks.letters import LetterTask
from models.losses import IGNORE


def letters(name: str) -> LetterTask:
    task = TASKS[name]
    assert isinstance(task, LetterTask)
    return task


def test_answers() -> None:
    for name, word, answer in [
        ("reverse", "hello", "olleh"),
        ("copy", "hello", "hello"),
        ("sort", "banana", "aaabnn"),
    ]:
        task = letters(name)
        ids = torch.tensor([task.tokenizer.ids(word)[:-1] + [0] * (8 - len(word))])
        assert task.tokenizer.decode(task.rewritten(ids)[0].tolist()) == answer


def test_batches_have_words_of_every_length_and_end_tokens() -> None:
    for name in ("reverse", "copy", "sort"):
        task = letters(name)
        end, begin = task.tokenizer.eos_id, task.tokenizer.bos_id
        batch = task.batch(0, task.training)
        source, decoder_input = batch.inputs
        assert set((source != 0).sum(-1).tolist()) == set(range(2, 10)), name
        for row, labels, given in zip(source, batch.labels, decoder_input, strict=True):
            length = int((row != 0).sum())
            assert (row[length - 1], labels[length - 1], given[0]) == (end, end, begin), name
            assert (labels[length:] == IGNORE).all(), name
            assert torch.equal(given[1:length], labels[: length - 1]), name


def test_reverse_looks_along_the_anti_diagonal_and_sort_wherever_the_letter_stands() -> None:
    for name, word, written, expected in [
        ("reverse", "abc", "xcba", [[0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]),
        ("sort", "bab", "xabb", [[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 0]]),
    ]:
        encode = letters(name).tokenizer.encode
        pattern = letters(name).pattern(encode(word), encode(written)[:4])
        assert pattern is not None
        assert pattern.tolist() == expected, name
