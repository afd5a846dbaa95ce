"""What a training takes, and how often a thing beside it is worth its time."""

from dataclasses import replace

import pytest

from explorer.runs import run_size
from explorer.runs.run_size import expected_speed, memory_fault, training_size
from explorer.runs.settings import default_spec, spec_of
from explorer.runs.spec import RunError
from explorer.system import pace
from explorer.system.pace import Pace, Speed, is_snapshot_step, snapshot_steps
from explorer.tasks import CUSTOM_TASKS, TASKS
from models import Transformer, TransformerConfig
from models.training import TrainState, batch_loss, train
from tests.app.test_throttle import Clock
from tests.calls import watched
from tests.catalog.test_pass_size import most_held

WITHIN = 4.0
"""So many times what the passes hold, at most."""


@pytest.mark.parametrize("name", ["reverse", "induction", "negation"])
def test_the_memory_that_is_said_is_enough_and_not_far_more(name: str) -> None:
    task = TASKS[name]
    spec = default_spec(task)
    said = training_size(task, spec)
    model = Transformer(spec.model).train()
    assert said.parameters == model.n_parameters
    batch = task.batch(0, spec.training)
    held = most_held(lambda: batch_loss(model, batch).backward()) - said.gradients
    assert held <= said.activations <= WITHIN * held
    state = TrainState.fresh(model, spec.training)
    next(train(model, lambda step: task.batch(step, spec.training), spec.training, state))
    kept = [
        tensor for each in state.optimizer.state.values() for tensor in each.values()
        if tensor.dim()
    ]  # fmt: skip
    assert sum(tensor.nbytes for tensor in kept) == said.optimizer


def test_a_small_model_is_timed_once_and_a_large_one_never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each model, precision and text of one's own."""
    built = []

    class Counted(Transformer):
        def __init__(self, config: TransformerConfig) -> None:
            built.append(config)
            super().__init__(config)

    monkeypatch.setattr(run_size, "Transformer", Counted)
    task = TASKS["negation"]
    spec = default_spec(task)
    small = replace(spec, model=spec.model.replace(d_ff=48))
    first, again = expected_speed(task, small), expected_speed(task, small)
    assert (first, len(built)) == (again, 1)
    assert first.is_timed
    measured = expected_speed(task, replace(small, evaluate_every=1))
    assert measured.steps_per_second < first.steps_per_second * 0.9
    large = replace(spec, model=spec.model.replace(d_model=2048, n_layers=12))
    far = expected_speed(task, large)
    assert not far.is_timed
    assert 0 < far.steps_per_second < first.steps_per_second
    assert large.model not in built
    built.clear()
    told: list[object] = []
    for name in ("in_precision", "reserve"):
        call = watched(getattr(run_size, name), lambda first, *_: told.append(first))
        monkeypatch.setattr(run_size, name, call)
    for text in [" ".join(f"{word} {n}" for n in range(900)) for word in ("sea", "sky")]:
        task = CUSTOM_TASKS["characters"].build(text)
        for precision in ("float32", "bfloat16"):
            spec = default_spec(task)
            spec = replace(spec, training=spec.training.replace(precision=precision, batch_size=5))
            assert expected_speed(task, spec) == expected_speed(task, spec)
            assert told == [training_size(task, spec).memory, *[precision] * (run_size.TIMED + 1)]
            told.clear()
    assert len(built) == 4


def test_what_has_no_room_here_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    task = TASKS["reverse"]
    assert expected_speed(task, default_spec(task)).is_timed
    run_size._operations_per_second("float32")
    monkeypatch.setenv("EXPLORER_LIMIT_PASS_BYTES", "1000")
    monkeypatch.setattr(run_size, "_seconds_of_batch", None)
    assert not expected_speed(task, default_spec(task)).is_timed


def test_a_too_large_training_is_refused_before_its_build(monkeypatch: pytest.MonkeyPatch) -> None:
    task = TASKS["reverse"]
    assert memory_fault(task, default_spec(task)) is None
    with pytest.raises(RunError, match=r"This model has [\d,]+ parameters"):
        spec_of(task, {"d_model": 8192, "layers": 48})
    wide = {"d_model": 512, "batch_size": 4096, "layers": 4}
    monkeypatch.setenv("EXPLORER_LIMIT_RUN_MEMORY", "1000000000")
    with pytest.raises(RunError, match=r"needs about [\d.]+ GB of memory and a run here has 1 GB"):
        spec_of(task, wide)
    monkeypatch.setenv("EXPLORER_LIMIT_RUN_MEMORY", "900000000000")
    monkeypatch.setattr(run_size, "available_memory", lambda: 2_000_000_000)
    with pytest.raises(RunError, match="and this machine now has 2 GB: make the model"):
        spec_of(task, wide)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    return clock


def test_cheap_things_keep_their_interval_and_dear_ones_their_share(clock: Clock) -> None:
    for every, cost, before, after in ((1.0, 0.01, 0.9, 0.11), (0.0, 1.0, 8.9, 0.2)):
        thing = Pace(every=every, share=0.1)
        assert thing.is_due()
        with thing.timed():
            clock.now += cost
        clock.now += before
        assert not thing.is_due(), cost
        clock.now += after
        assert thing.is_due(), cost


def test_speed_counts_from_where_it_began(clock: Clock) -> None:
    speed = Speed(step=500)
    for seconds, step, found in ((2, 520, 10), (1, 540, 15), (5, 540, 15)):
        clock.now += seconds
        assert speed.update(step) == pytest.approx(found)


def test_early_steps_are_kept_closer() -> None:
    kept = [step for step in range(201) if is_snapshot_step(step)]
    assert snapshot_steps(201) == {*kept[1:], 201}
    assert kept == [0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200]
    later = [step for step in range(200, 2001, 10) if is_snapshot_step(step)]
    assert later == [step * 10 for step in kept if step >= 20]
