"""Induction: blocks repeat with a varying period, and only what can be known is asked."""

import torch

from explorer.tasks import TASKS
from explorer.tasks.induction import LENGTH, LONGEST, SHORTEST, Induction, canonical
from models.losses import IGNORE


def induction() -> Induction:
    task = TASKS["induction"]
    assert isinstance(task, Induction)
    return task


def test_the_period_varies_and_labels_are_repeats() -> None:
    task = induction()
    batch = task.batch(0, task.training)
    periods = set()
    for row, labels in zip(batch.inputs[0], batch.labels, strict=True):
        assert len(row) == LENGTH
        assert row[0] == task.tokenizer.bos_id
        letters = row[1:].tolist()
        period = next(p for p in range(1, 20) if letters[p:] == letters[:-p])
        periods.add(period)
        assert len(set(letters[:period])) == period
        assert (labels[: period + 1] == IGNORE).all()
        assert labels[period + 1 : -1].tolist() == letters[period + 1 :]
    assert periods == set(range(SHORTEST, LONGEST + 1))


def test_no_fixed_offset_answers_more_than_a_fraction() -> None:
    """The trap of a fixed period: one look a constant distance back must not be enough."""
    batch = induction().held_out_batch
    letters, labels = batch.inputs[0], batch.labels
    counted = labels != IGNORE
    for offset in range(LENGTH - 1):
        guess = torch.full_like(labels, -1)
        guess[:, offset:] = letters[:, : LENGTH - offset]
        assert (guess == labels)[counted].float().mean() < 0.4


def test_a_block_is_held_out_with_all_its_rotations() -> None:
    blocks = torch.tensor([[5, 9, 7, 0], [9, 7, 5, 0], [7, 5, 9, 0], [5, 7, 9, 0]])
    assert canonical(blocks).tolist() == [[5, 9, 7, 0]] * 3 + [[5, 7, 9, 0]]
    task = induction()
    held_out = {tuple(row) for row in canonical(_blocks(task.held_out_batch.inputs[0])).tolist()}
    for step in range(500):
        rows = task.batch(step, task.training).inputs[0]
        assert not held_out & {tuple(row) for row in canonical(_blocks(rows)).tolist()}


def _blocks(rows: torch.Tensor) -> torch.Tensor:
    """The first block of each row, padded."""
    letters = rows[:, 1 : LONGEST + 1]
    again = (letters == letters[:, :1]).float()
    again[:, 0] = 0
    period = torch.where(again.any(-1), again.argmax(-1), LONGEST)
    return letters.masked_fill(torch.arange(LONGEST) >= period[:, None], 0)


def test_a_letter_looks_after_its_previous_copies() -> None:
    task = induction()
    pattern = task.pattern(task.tokenizer.encode("ababa"))
    assert pattern is not None
    assert pattern.nonzero().tolist() == [[3, 2], [4, 3], [5, 2], [5, 4]]
