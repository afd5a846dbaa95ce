"""What every task promises: nothing held out is trained on, and batches follow from a seed."""

from collections.abc import Iterable

import pytest
import torch
from torch.nn.functional import pad

from explorer.tasks import GIVEN, TASKS, Task, task_of
from explorer.text import TextError, Token
from models import Transformer
from models.losses import IGNORE
from models.training import Batch

BATCHES = 2_000
BUILT_IN = pytest.mark.parametrize("name", list(TASKS))


def examples(batches: Iterable[Batch]) -> set[tuple[int, ...]]:
    """What the model reads first in each row, without padding."""
    parts = [batch.inputs[0] for batch in batches]
    widest = max(part.shape[1] for part in parts)
    rows = torch.cat([pad(part, (0, widest - part.shape[1])) for part in parts]).unique(dim=0)
    return {tuple(number for number in row if number) for row in rows.tolist()}


@BUILT_IN
def test_training_never_sees_a_held_out_example(name: str) -> None:
    task = TASKS[name]
    held_out = examples([task.held_out_batch])  # type: ignore[attr-defined]
    assert len(held_out) > 100
    seen = examples(task.batch(step, task.training) for step in range(BATCHES))
    assert not seen & held_out
    assert len(seen) > 1000


@BUILT_IN
def test_a_batch_follows_from_seed_and_step(name: str) -> None:
    task = TASKS[name]
    one, again = (task.batch(7, task.training) for _ in range(2))
    assert all(map(torch.equal, one.inputs, again.inputs))
    assert torch.equal(one.labels, again.labels)
    other_step = task.batch(8, task.training)
    other_seed = task.batch(7, task.training.replace(seed=1))
    for other in (other_step, other_seed):
        assert examples([other]) != examples([one])
    random_state = torch.get_rng_state()
    task.batch(7, task.training)
    assert torch.equal(torch.get_rng_state(), random_state)


@BUILT_IN
def test_the_default_model_reads_the_batches(name: str) -> None:
    task = TASKS[name]
    assert task.model.fault() is None
    assert task.training.fault() is None
    model = Transformer(task.model)
    batch = task.batch(0, task.training)
    logits = model(*batch.inputs)
    assert logits.shape[:-1] == batch.labels.shape
    assert len(batch.labels) == task.training.batch_size
    labels = batch.labels[batch.labels != IGNORE]
    assert labels.min() >= 0
    assert labels.max() < logits.shape[-1]
    assert 0 <= task.measure(model).value < task.goal
    assert not [p for p in model.parameters() if p.grad is not None]


@BUILT_IN
def test_the_words_about_a_task_and_its_examples(name: str) -> None:
    task = TASKS[name]
    assert task.name == name
    for text in (task.title, task.explanation, task.expectation, task.held_out):
        assert text
        assert "!" not in text
    for example in task.examples:
        ids = task.tokenizer.ids(example)
        assert task.tokenizer.unk_id not in ids, example
        assert len(ids) <= task.model.max_len


@BUILT_IN
def test_the_expected_pattern_fits_the_tokens(name: str) -> None:
    task = TASKS[name]
    source = task.tokenizer.encode(task.example)
    target: tuple[Token, ...] = ()
    if task.model.kind == "encoder-decoder":
        target = tuple(map(task.tokenizer.token, task.tokenizer.target_ids(task.example)[:-1]))
    pattern = task.pattern(source, target)
    assert pattern is not None
    assert pattern.shape == (len(target or source), len(source))
    sums = pattern.sum(-1)
    assert ((sums - 1).abs() < 1e-5).logical_or(sums == 0).all()
    assert sums.any()
    stack, layer, attention = task.pattern_site.split(".")
    assert stack in task.model.stacks
    assert int(layer) < task.model.n_layers
    assert attention == ("cross_attn" if target else "self_attn")


def test_an_unknown_task_and_a_missing_text_are_refused_in_a_sentence() -> None:
    with pytest.raises(TextError, match="no task called 'sing'; there are reverse, copy"):
        task_of("sing")
    with pytest.raises(TextError, match="none was given"):
        task_of("characters")
    assert task_of("reverse") is TASKS["reverse"]
    assert set(GIVEN) == {"characters", "shakespeare", "reviews"}
    assert isinstance(TASKS["copy"], Task)
