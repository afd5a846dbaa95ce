"""Brackets, dates, sums, a fixed period, an encoder that reverses: what is theirs alone."""

import datetime

import pytest
import torch

from explorer.tasks import TASKS
from explorer.tasks.addition import MODULUS, Addition, split_sums
from explorer.tasks.brackets import Brackets, is_balanced
from explorer.tasks.dates import FORMATS, Dates
from explorer.tasks.fixed_period import PERIOD
from explorer.tasks.induction import Induction
from explorer.text import Token
from models import Transformer
from models.losses import IGNORE
from models.training import train

# ---- brackets ------------------------------------------------------------------------


def brackets() -> Brackets:
    task = TASKS["brackets"]
    assert isinstance(task, Brackets)
    return task


def test_balanced_is_what_the_brackets_say() -> None:
    for text, balanced in {
        "": True, "()": True, "(())()": True, ")(": False, "(": False, "())(": False, "((": False,
    }.items():  # fmt: skip
        assert is_balanced(text) == balanced, text


def test_half_of_a_batch_is_balanced_and_counting_alone_is_not_enough() -> None:
    task = brackets()
    assert [len(rows) for rows in task.groups] == [196, 1078, 5460 - 196 - 1078]
    for batch in (task.batch(0, task.training), task.held_out_batch):
        texts = [task.tokenizer.decode(row.tolist()) for row in batch.inputs[0]]
        assert [is_balanced(text) for text in texts] == batch.labels.bool().tolist()
        assert batch.labels.float().mean() == 0.5
        by_count = [text.count("(") == text.count(")") for text in texts]
        assert sum(by_count) == pytest.approx(0.75 * len(texts), abs=1)
        assert not any(len(text) % 2 for text in texts)


# ---- dates ---------------------------------------------------------------------------


def dates() -> Dates:
    task = TASKS["dates"]
    assert isinstance(task, Dates)
    return task


def test_dates_in_every_format_have_one_answer() -> None:
    day = datetime.date(2021, 9, 5)
    written = ["".join(form(day)) for form in FORMATS]
    assert written == ["5 september 2021", "september 5, 2021", "5 sep 2021", "5.9.2021"]
    for text in written:
        answer = dates().answer(dates().tokenizer.encode(text))
        assert "".join(token.label for token in answer) == "2021-09-05</s>", text
    for text in ("", "5 september", "31 june 2021", "september 5 2021", "2021-09-05", "5.9.21"):
        assert dates().answer(dates().tokenizer.encode(text)) == (), text


def test_a_digit_of_a_date_comes_from_where_it_is_written() -> None:
    task = dates()
    for text, places in {
        "5 mar 2021": [[6], [7], [8], [9], [], [2, 3, 4], [2, 3, 4], [], [0], [0]],
        "march 15, 2021": [[10], [11], [12], [13], [], [*range(5)], [*range(5)], [], [6], [7]],
        "24.12.1999": [[6], [7], [8], [9], [], [3], [4], [], [0], [1]],
    }.items():
        source = task.tokenizer.encode(text)
        target = (Token(0, "<s>"), *task.answer(source))[:-1]
        pattern = task.pattern(source, target)
        assert pattern is not None
        assert [row.nonzero()[:, 0].tolist() for row in pattern[:10]] == places, text
    assert task.pattern(task.tokenizer.encode("tomorrow"), target) is None


# ---- addition and its leak -----------------------------------------------------------


def addition(name: str) -> Addition:
    task = TASKS[name]
    assert isinstance(task, Addition)
    return task


def test_sums_are_right_and_a_batch_holds_all_of_them() -> None:
    for name in ("addition", "addition-leak"):
        task = addition(name)
        batch = task.batch(3, task.training)
        for row, labels in zip(batch.inputs[0], batch.labels, strict=True):
            a, b = (int(task.tokenizer.label(int(row[at]))) for at in (1, 3))
            assert task.tokenizer.label(int(labels[4])) == str((a + b) % MODULUS)
            assert (labels[:4] == IGNORE).all()
        assert len(batch.inputs[0].unique(dim=0)) == task.training_size == len(batch.labels)
        assert len(task.batch(3, task.training.replace(batch_size=20)).labels) == 20
        share = len(batch.labels) / MODULUS**2
        assert share == pytest.approx(0.7, abs=0.01)


def mirrored_and_trained(ordered: bool) -> float:
    """The share of held-out sums whose mirror image is trained on."""
    trained, held_out = ({tuple(pair) for pair in part.tolist()} for part in split_sums(ordered))
    assert not trained & held_out
    return sum((b, a) in trained for a, b in held_out) / len(held_out)


def test_unordered_pairs_do_not_leak_and_ordered_ones_do() -> None:
    """Whoever only looks up b + a is right on two thirds of what the leaking split holds out."""
    assert mirrored_and_trained(ordered=False) == 0
    assert mirrored_and_trained(ordered=True) > 0.6
    assert "mistake" in TASKS["addition-leak"].explanation


# ---- induction with a fixed period ---------------------------------------------------


def fixed_period() -> Induction:
    task = TASKS["induction-fixed"]
    assert isinstance(task, Induction)
    return task


def test_with_a_fixed_period_a_constant_offset_answers_everything() -> None:
    task = fixed_period()
    batch = task.held_out_batch
    letters, labels = batch.inputs[0], batch.labels
    counted = labels != IGNORE
    guess = torch.full_like(labels, -1)
    guess[:, PERIOD - 1 :] = letters[:, : letters.shape[1] - PERIOD + 1]
    assert (guess == labels)[counted].all()
    pattern = task.pattern(task.tokenizer.encode("abcdefghabcd"))
    assert pattern is not None
    assert pattern.nonzero().tolist() == [[at, at - PERIOD + 1] for at in range(9, 13)]


def test_one_layer_seems_to_learn_induction_and_fails_at_another_period() -> None:
    task, other = fixed_period(), TASKS["induction"]
    assert task.model.n_layers == 1
    model, training = Transformer(task.model), task.training.replace(steps=200)
    for _ in train(model, lambda step: task.batch(step, training), training):
        pass
    assert task.measure(model).value > 0.99
    assert other.measure(model).value < 0.5
