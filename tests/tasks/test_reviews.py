"""A table of labelled sentences as a task."""

import pytest

from explorer.tasks import task_of
from explorer.tasks.reviews import ReviewTask, read_table, split
from explorer.text import TextError
from models import Transformer
from models.training import train

ROWS = [f"meal {i} was {word},{label}" for i in range(60) for word, label in
        (("good", "up"), ("bad", "down"))]  # fmt: skip
TABLE = "text,label\n" + "\n".join(ROWS)


@pytest.fixture(scope="module")
def task() -> ReviewTask:
    built = task_of("reviews", TABLE)
    assert isinstance(built, ReviewTask)
    return built


def test_classes_and_shares(task: ReviewTask) -> None:
    assert task.classes == ("down", "up")
    assert task.model.n_classes == 2
    assert task.held_out_batch.labels.bincount().tolist() == [12, 12]
    assert task.training_rows.labels.bincount().tolist() == [48, 48]


def test_no_held_out_sentence_is_trained_on_even_when_it_comes_twice() -> None:
    labelled, _ = read_table(TABLE + "\n" + "\n".join(ROWS[:40]))
    training, held_out = split(labelled)
    assert len(labelled) == 120
    assert not {text for text, _ in training} & {text for text, _ in held_out}
    assert split(list(reversed(labelled))) == (training, held_out)


def test_batches_hide_words_but_never_the_first_token(task: ReviewTask) -> None:
    batch = task.batch(0, task.training)
    rows = batch.inputs[0]
    assert set(rows[:, 0].tolist()) == {task.tokenizer.cls_id}
    assert 0.3 < (rows[:, 1:] == 0).float().mean() < 0.7
    known = {tuple(row) for row in task.held_out_batch.inputs[0].tolist()}
    for step in range(2_000):
        batch = task.batch(step, task.training)
        assert not known & {tuple(row) for row in batch.inputs[0].tolist() if 0 not in row}


def test_it_learns(task: ReviewTask) -> None:
    model = Transformer(task.model)
    training = task.training.replace(steps=150)
    for _ in train(model, lambda step: task.batch(step, training), training):
        pass
    assert task.measure(model).value > 0.95


def test_a_table_nothing_can_be_learnt_from_is_refused(subtests: pytest.Subtests) -> None:
    for table, sentence in [
        ("", "names the columns text and label"),
        ("a,b\n1,2", "names the columns text and label"),
        ("text,label\nhello,1", "1 different values"),
        ("text,label\nhello,1\nbye,0", "2 sentences; give at least 40"),
        ("text,label\n" + "\n".join(f"t{i},{i}" for i in range(60)), "60 different values"),
        ('text,label\n"' + "a" * 200_000 + '",1', "cannot be read"),
        ("text,label\na\ud800,1", "half of a character pair"),
    ]:
        with subtests.test(table=table), pytest.raises(TextError, match=sentence):
            task_of("reviews", table)
