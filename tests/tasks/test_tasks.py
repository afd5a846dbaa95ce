"""What every task promises: nothing held out is trained on, and batches follow from a seed."""

from collections.abc import Iterable

import pytest
import torch
from torch.nn.functional import pad

from explorer.tasks import GIVEN, TASKS, Task, pattern_of, task_of
from explorer.text import TextError, Token
from models import Transformer
from models.losses import IGNORE
from models.training import Batch

BATCHES = 500


def examples(batches: Iterable[Batch]) -> set[tuple[int, ...]]:
    """What the model reads first in each row, without padding."""
    parts = [batch.inputs[0] for batch in batches]
    widest = max(part.shape[1] for part in parts)
    rows = torch.cat([pad(part, (0, widest - part.shape[1])) for part in parts]).unique(dim=0)
    return {tuple(number for number in row if number) for row in rows.tolist()}


def test_training_never_sees_a_held_out_example() -> None:
    for name, task in TASKS.items():
        held_out = examples([task.held_out_batch])  # type: ignore[attr-defined]
        assert len(held_out) > 100, name
        seen = examples(task.batch(step, task.training) for step in range(BATCHES))
        assert not seen & held_out, name
        assert len(seen) > 1000, name


def test_a_batch_follows_from_seed_and_step() -> None:
    for name, task in TASKS.items():
        random_state = torch.get_rng_state()
        one, again = (task.batch(7, task.training) for _ in range(2))
        assert torch.equal(torch.get_rng_state(), random_state), name
        assert all(map(torch.equal, one.inputs, again.inputs)), name
        assert torch.equal(one.labels, again.labels), name
        other_step = task.batch(8, task.training)
        other_seed = task.batch(7, task.training.replace(seed=1))
        for other in (other_step, other_seed):
            assert examples([other]) != examples([one]), name


def test_the_default_model_reads_the_batches_and_the_examples(subtests: pytest.Subtests) -> None:
    for name, task in TASKS.items():
        with subtests.test(name=name):
            assert task.name == name
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
            for example in task.examples:
                ids = task.tokenizer.ids(example)
                assert task.tokenizer.unk_id not in ids, example
                assert len(ids) <= task.model.max_len


def test_the_expected_pattern_fits_the_tokens(subtests: pytest.Subtests) -> None:
    for name, task in TASKS.items():
        with subtests.test(name=name):
            source = task.tokenizer.encode(task.example)
            target: tuple[Token, ...] = ()
            if task.model.kind == "encoder-decoder":
                written = task.tokenizer.target_ids(task.example)[:-1]
                target = tuple(map(task.tokenizer.token, written))
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


def test_a_pattern_that_expects_nothing_is_none() -> None:
    """A score of it would be a mean over no rows: not a number."""
    negation = TASKS["negation"]
    neutral, telling = map(negation.tokenizer.encode, ("the film is", "the film is good"))
    square = (len(telling), len(telling))
    assert pattern_of(negation, neutral, (), (len(neutral), len(neutral))) is None
    pattern = pattern_of(negation, telling, (), square)
    assert pattern is not None
    assert pattern.any()
    assert pattern_of(negation, telling, (), (3, 4)) is None


def test_an_unknown_task_and_a_missing_text_are_refused_in_a_sentence() -> None:
    with pytest.raises(TextError, match="no task called 'sing'; there are reverse, copy"):
        task_of("sing")
    with pytest.raises(TextError, match="none was given"):
        task_of("characters")
    assert task_of("reverse") is TASKS["reverse"]
    assert set(GIVEN) == {"characters", "shakespeare", "reviews"}
    assert isinstance(TASKS["copy"], Task)
