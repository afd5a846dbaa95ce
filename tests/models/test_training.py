"""Training: a generator of reports, each a function of the seeds and the step."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from models.losses import IGNORE
from models.trace import trace
from models.training import (
    OPTIMIZERS,
    SCHEDULES,
    Batch,
    Report,
    TrainConfig,
    TrainState,
    build_optimizer,
    learning_rate,
    seeded,
    train,
)
from models.transformer import Transformer
from tests.grids import grid
from tests.models.building import SMALL, config_of, ids_of

CONFIG = TrainConfig(steps=6, batch_size=4, lr=0.01, warmup=2)


def batch_at(step: int) -> Batch:
    """Say every token again: a task that a step or two makes easier."""
    ids = ids_of(4, 6, seed=100 + step)
    return Batch((ids,), ids)


def fresh(**changes: Any) -> Transformer:
    return Transformer(SMALL.replace(**changes))


def weights(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def assert_equal_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


def test_it_learns() -> None:
    model = fresh()
    reports = list(train(model, batch_at, CONFIG.replace(steps=40)))
    assert reports[0].loss > math.log(8)
    assert reports[-1].loss < 0.5
    assert [report.step for report in reports] == list(range(1, 41))


def test_reports() -> None:
    model, losses = fresh(), []
    batch = batch_at(0)
    losses.append(nn.functional.cross_entropy(model(*batch.inputs).mT, batch.labels).item())
    report = next(train(model, batch_at, CONFIG))
    assert isinstance(report, Report)
    assert report.loss == pytest.approx(losses[0], rel=1e-6)
    assert report.lr == CONFIG.lr / 2, "the first of two steps of warm-up"
    assert report.grad_norm > 0
    assert report.seconds > 0


@grid("optimizer, dropout", OPTIMIZERS, [0.0, 0.3])
def test_the_same_seeds_give_the_same_weights(optimizer: str, dropout: float) -> None:
    config = CONFIG.replace(optimizer=optimizer, seed=4)
    results = []
    for disturbance in (1, 2):
        model = fresh(dropout=dropout)
        torch.manual_seed(disturbance)
        for _ in train(model, batch_at, config):
            torch.rand(disturbance)
        results.append(weights(model))
    assert_equal_weights(*results)


def test_another_seed_drops_others() -> None:
    one, other = fresh(dropout=0.3), fresh(dropout=0.3)
    for model, seed in ((one, 1), (other, 2)):
        list(train(model, batch_at, CONFIG.replace(seed=seed)))
    assert not torch.equal(one.last_stack.embedding.weight, other.last_stack.embedding.weight)


def test_the_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    list(train(fresh(dropout=0.3), batch_at, CONFIG))
    assert torch.equal(before, torch.get_rng_state())


def test_dropout_differs_from_step_to_step() -> None:
    def drawn(seed: int, step: int) -> list[float]:
        with seeded(seed, step):
            return torch.rand(3).tolist()

    draws = [drawn(seed, step) for seed in range(3) for step in range(4)]
    assert len({tuple(draw) for draw in draws}) == 12
    assert drawn(1, 2) == drawn(1, 2)
    drawn(2**31 - 1, 10_000_000)


def test_one_stops_it_by_no_longer_asking() -> None:
    model, state = fresh(), None
    state = TrainState.fresh(model, CONFIG)
    reports = list(islice(train(model, batch_at, CONFIG, state), 2))
    assert state.step == reports[-1].step == 2
    stopped = weights(model)
    again = [report.step for report in train(model, batch_at, CONFIG, state)]
    assert again == [3, 4, 5, 6], "and goes on where it stopped"
    straight = fresh()
    list(islice(train(straight, batch_at, CONFIG), 2))
    assert_equal_weights(weights(straight), stopped)
    list(train(straight, batch_at, CONFIG))
    assert list(train(model, batch_at, CONFIG, state)) == [], "all steps are done"


def test_watching_between_steps_changes_nothing() -> None:
    watched, alone = fresh(dropout=0.3), fresh(dropout=0.3)
    for _ in train(watched, batch_at, CONFIG):
        trace(watched, ids_of(1, 5))
        watched.generate(ids_of(1, 2), max_length=3)
        assert watched.training
    list(train(alone, batch_at, CONFIG))
    assert_equal_weights(weights(watched), weights(alone))


def test_rates_of_the_schedules() -> None:
    config = TrainConfig(steps=110, warmup=10, lr=1.0)
    for schedule in SCHEDULES:
        rates = [learning_rate(config.replace(schedule=schedule), step) for step in range(110)]
        assert rates[:10] == pytest.approx([0.1 * (step + 1) for step in range(10)])
        assert rates[10] == 1.0
        middle, end = {"constant": (1, 1), "linear": (0.5, 0), "cosine": (0.5, 0)}[schedule]
        assert rates[60] == pytest.approx(middle)
        assert rates[109] == pytest.approx(end, abs=0.011)
        assert rates[109] > 0
        assert sorted(rates[10:], reverse=True) == rates[10:]
    assert learning_rate(TrainConfig(warmup=0, lr=1.0), 0) == 1.0


def test_clipping() -> None:
    def moved(clip: float) -> float:
        model = fresh()
        before = weights(model)
        config = CONFIG.replace(optimizer="sgd", weight_decay=0.0, warmup=0, lr=1.0, clip=clip)
        report = next(train(model, batch_at, config))
        steps = [(before[name] - value).square().sum() for name, value in weights(model).items()]
        assert report.grad_norm > 0.5, "it is told as it was before clipping"
        return float(sum(steps) ** 0.5)

    assert moved(0.01) == pytest.approx(0.01, rel=1e-3)
    assert moved(0) == pytest.approx(moved(1e6), rel=1e-6)


def test_weight_decay_is_for_matrices() -> None:
    model = fresh()
    decayed, spared = build_optimizer(model, CONFIG.replace(weight_decay=0.5)).param_groups
    assert decayed["weight_decay"] == 0.5
    assert spared["weight_decay"] == 0
    assert all(parameter.dim() > 1 for parameter in decayed["params"])
    assert all(parameter.dim() == 1 for parameter in spared["params"])
    assert len(decayed["params"]) + len(spared["params"]) == len(list(model.parameters()))


def test_label_smoothing_and_ignored_labels_reach_the_loss() -> None:
    def first_loss(ignored: bool, **changes: Any) -> float:
        ids = ids_of(4, 6)
        labels = ids.clone()
        if ignored:
            labels[:, 3:] = IGNORE
        return next(train(fresh(), lambda _: Batch((ids,), labels), CONFIG.replace(**changes))).loss

    assert first_loss(False) != first_loss(True)
    assert first_loss(False) != first_loss(False, label_smoothing=0.1)


def test_every_kind_trains(subtests: pytest.Subtests) -> None:
    for kind in ["encoder", "decoder", "encoder-decoder"]:
        with subtests.test(kind=kind):
            head = "classifier" if kind == "encoder" else "language-model"
            model = Transformer(config_of(kind, head=head))
            ids = ids_of(4, 6)
            inputs = (ids, ids) if kind == "encoder-decoder" else (ids,)
            labels = torch.arange(4) % 2 if head == "classifier" else ids
            batches = [Batch(inputs, labels)] * 40
            reports = list(train(model, batches.__getitem__, CONFIG.replace(steps=40)))
            assert reports[-1].loss < reports[0].loss / 2


FAULTS: dict[str, dict[str, Any]] = {
    "steps must be between 1 and 10,000,000, not 0.": {"steps": 0},
    "warmup must be between 0 and 10,000,000, not -1.": {"warmup": -1},
    "batch_size must be between 1 and 4,096, not 5000.": {"batch_size": 5000},
    "lr must be between 1e-08 and 10, not 0.": {"lr": 0},
    "lr must be between 1e-08 and 10, not nan.": {"lr": math.nan},
    "weight_decay must be between 0 and 10, not -1.": {"weight_decay": -1},
    "clip must be between 0 and 1,000,000.0, not -1.": {"clip": -1},
    "label_smoothing must be between 0 and 0.95, not 1.": {"label_smoothing": 1},
    "seed must be between 0 and 2,147,483,647, not -1.": {"seed": -1},
    "optimizer must be one of adamw, adam, sgd, not 'lion'.": {"optimizer": "lion"},
    "schedule must be one of constant, linear, cosine, not 'x'.": {"schedule": "x"},
    "steps must be int, not float.": {"steps": 1.5},
}


def test_faults(subtests: pytest.Subtests) -> None:
    for sentence, changes in FAULTS.items():
        with subtests.test(sentence=sentence):
            assert TrainConfig(**changes).fault() == sentence
            with pytest.raises(ValueError) as refused:
                TrainConfig.from_dict(changes)
            assert str(refused.value) == sentence


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(list(TrainConfig().to_dict())), st.floats() | st.integers()))
def test_any_other_settings_are_refused_or_kept(values: dict[str, Any]) -> None:
    config = TrainConfig(**values)
    fault = config.fault()
    if fault is None:
        assert TrainConfig.from_json(config.to_json()) == config
        return
    assert fault.endswith(".")
    with pytest.raises(ValueError) as refused:
        TrainConfig.from_dict(values)
    assert str(refused.value) == fault
