"""Training: a generator of reports, each a function of the seeds and the step."""

import math
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from models import distributed, training
from models.config import OPTIMIZERS, TrainConfig
from models.losses import IGNORE, cross_entropy, label_smoothing
from models.model import Transformer
from models.optimizers import MuonAndAdamW, build_optimizer
from models.presets import PAPER_TRAINING
from models.schedules import learning_rate
from models.training import Batch, Report, train
from tests.closeness import assert_close_to
from tests.grids import grid
from tests.tiny import SMALL, assert_equal_weights, config_of, ids_of, shake, weights

CONFIG = TrainConfig(steps=6, batch_size=4, lr=0.01, warmup=2)


def batch_at(step: int) -> Batch:
    """Say every token again: a task that a step or two makes easier."""
    ids = ids_of(4, 6, seed=100 + step)
    return Batch((ids,), ids)


def vector(model: Transformer) -> torch.Tensor:
    """All weights at once, since some biases are near zero and so no measure of themselves."""
    return parameters_to_vector(model.parameters())


def trained(seed: int = 0, **how: Any) -> dict[str, torch.Tensor]:
    """The weights of a fresh model with dropout after a few steps."""
    model = Transformer(SMALL.replace(dropout=0.3))
    list(train(model, batch_at, CONFIG.replace(seed=seed, **how)))
    return weights(model)


def test_a_report_tells_of_the_step_that_was_made() -> None:
    model, batch = Transformer(SMALL), batch_at(0)
    logits = model(*batch.inputs).mT
    loss = nn.functional.cross_entropy(logits, batch.labels, label_smoothing=0.1).item()
    report = next(train(model, batch_at, CONFIG.replace(label_smoothing=0.1)))
    assert report.loss == pytest.approx(loss, rel=1e-6)
    assert report.lr == CONFIG.lr / 2, "the first of two steps of warm-up"
    assert min(report.grad_norm, report.seconds) > 0


@pytest.mark.usefixtures("shapes_unchecked")
def test_every_kind_learns() -> None:
    ids = ids_of(4, 6)
    for config, inputs, labels in (
        (config_of("encoder", head="classifier"), (ids,), torch.arange(4) % 2),
        (config_of("decoder"), (ids,), ids),
        (config_of("encoder-decoder"), (ids, ids), ids),
    ):
        batches, how = [Batch(inputs, labels)] * 30, CONFIG.replace(steps=30, lr=0.02)
        reports = list(train(Transformer(config), batches.__getitem__, how))
        assert [report.step for report in reports] == list(range(1, 31))
        assert reports[-1].loss < reports[0].loss / 2, config.kind


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_weights_follow_from_the_seed_alone_and_the_random_state_is_left(optimizer: str) -> None:
    torch.manual_seed(1)
    before, once = torch.get_rng_state(), trained(4, optimizer=optimizer)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    assert_equal_weights(once, trained(4, optimizer=optimizer))
    name = "decoder.embedding.weight"
    assert not torch.equal(once[name], trained(5, optimizer=optimizer)[name]), "it drops others"


def test_rates_of_the_schedules() -> None:
    config = TrainConfig(steps=110, warmup=10, lr=1.0)
    for schedule, middle, end in (("constant", 1, 1), ("linear", 0.5, 0), ("cosine", 0.5, 0)):
        rates = [learning_rate(config.replace(schedule=schedule), step) for step in range(110)]
        assert rates[:10] == pytest.approx([0.1 * (step + 1) for step in range(10)])
        assert rates[10] == 1.0
        assert rates[60] == pytest.approx(middle)
        assert rates[109] == pytest.approx(end, abs=0.011)
        assert rates[109] > 0
        assert sorted(rates[10:], reverse=True) == rates[10:]
    assert learning_rate(TrainConfig(warmup=0, lr=1.0), 0) == 1.0


def test_the_paper_is_trained_with_its_own_rates() -> None:
    """Section 5.3: d_model^−0.5 · min(step^−0.5, step · warmup^−1.5), β₂ 0.98, ε 1e-9."""
    for d_model, warmup in ((512, 4000), (1024, 4000), (64, 1)):
        lr = (d_model * warmup) ** -0.5
        how = PAPER_TRAINING.replace(lr=lr, warmup=warmup)
        for step in (1, 2, warmup, warmup + 1, 2 * warmup, 100_000):
            theirs = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
            assert learning_rate(how, step - 1) == pytest.approx(theirs, rel=1e-12)
    assert PAPER_TRAINING.fault() is None
    assert PAPER_TRAINING.lr == pytest.approx(6.9877e-4, rel=1e-4)
    without = PAPER_TRAINING.replace(warmup=0, lr=1.0)
    assert [learning_rate(without, step) for step in (0, 3)] == [1.0, 0.5]
    for config, betas, eps in (
        (PAPER_TRAINING, (0.9, 0.98), 1e-9),
        (CONFIG.replace(optimizer="adam"), (0.9, 0.999), 1e-8),
        (CONFIG, (0.9, 0.999), 1e-8),
    ):
        for group in build_optimizer(Transformer(SMALL), config).param_groups:
            assert (group["betas"], group["eps"]) == (betas, eps), config.optimizer


def test_clipping() -> None:
    def moved(clip: float) -> float:
        model = Transformer(SMALL)
        before = weights(model)
        config = CONFIG.replace(optimizer="sgd", weight_decay=0.0, warmup=0, lr=1.0, clip=clip)
        report = next(train(model, batch_at, config))
        steps = [(before[name] - value).square().sum() for name, value in weights(model).items()]
        assert report.grad_norm > 0.5, "it is told as it was before clipping"
        return float(sum(steps) ** 0.5)

    assert moved(0.01) == pytest.approx(0.01, rel=1e-3)
    assert moved(0) == pytest.approx(moved(1e6), rel=1e-6)


def some_left_out(step: int) -> Batch:
    """Texts of different numbers of labels, one of which has none."""
    batch = batch_at(step)
    labels = batch.labels.clone()
    labels[0], labels[1, 2:] = IGNORE, IGNORE
    return Batch(batch.inputs, labels)


@grid("parts, smoothing", [2, 3, 5, 64], [0.0, 0.1])
def test_a_batch_in_parts_is_the_batch_as_a_whole(parts: int, smoothing: float) -> None:
    def updated(accumulation: int) -> tuple[Transformer, list[Report]]:
        model = Transformer(SMALL)
        how = CONFIG.replace(accumulation=accumulation, label_smoothing=smoothing, optimizer="sgd")
        return model, list(train(model, some_left_out, how))

    (whole, reports), (parted, of_parts) = updated(1), updated(parts)
    for one, other in zip(reports, of_parts, strict=True):
        assert other.loss == pytest.approx(one.loss, rel=1e-6)
        assert other.grad_norm == pytest.approx(one.grad_norm, rel=1e-5)
    assert_close_to(vector(parted), vector(whole))


@grid("tied, accumulation", [True, False], [1, 3])
def test_logits_in_parts(tied: bool, accumulation: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def updated(large: int) -> tuple[Transformer, list[Report]]:
        monkeypatch.setattr("models.losses.LARGE_LOGITS", large)
        model = Transformer(SMALL.replace(tie_embeddings=tied, d_model=8, n_heads=2))
        shake(model)
        how = CONFIG.replace(accumulation=accumulation, optimizer="sgd", momentum=0.0)
        return model, list(train(model, some_left_out, how))

    chunked = Mock(wraps=training.large_logits_loss)
    monkeypatch.setattr(training, "large_logits_loss", chunked)
    (whole, reports), (parted, of_parts) = updated(2**60), updated(0)
    assert chunked.call_count >= CONFIG.steps
    assert [r.loss for r in of_parts] == pytest.approx([r.loss for r in reports], rel=1e-6)
    assert_close_to(vector(parted), vector(whole))


@pytest.mark.usefixtures("shapes_unchecked")
def test_muon_is_for_the_matrices_inside_of_blocks_and_decay_for_all() -> None:
    model = Transformer(SMALL)
    optimizer = build_optimizer(model, CONFIG.replace(optimizer="muon", momentum=0.95))
    by_muon = {id(p) for p in optimizer.param_groups[0]["params"]}
    names = {name for name, p in model.named_parameters() if id(p) in by_muon}
    assert names == {n for n in weights(model) if ".blocks." in n and "_proj.weight" in n}
    groups = build_optimizer(model, CONFIG.replace(weight_decay=0.5)).param_groups
    decay = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    assert decay == {id(p): 0.5 if p.dim() > 1 else 0 for p in model.parameters()}


def test_an_update_of_muon_is_torchs_in_bfloat16_or_is_not_made() -> None:
    first, how = (LOGITS[0], LOGITS[1].mT), {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}
    ours, theirs = ([nn.Parameter(matrix.clone()) for matrix in first] for _ in range(2))
    other = {"params": [nn.Parameter(torch.ones(1))]}
    optimizer = MuonAndAdamW({"params": ours, **how}, [other])
    torchs = torch.optim.Muon(theirs, **how, adjust_lr_fn="match_rms_adamw")  # type: ignore[arg-type]
    for gradient in LOGITS:
        for matrices in (ours, theirs):
            matrices[0].grad, matrices[1].grad = gradient, gradient.mT
        optimizer.step()
        torchs.step()
        for matrix, expected in zip(ours, theirs, strict=True):
            assert_close_to(matrix.detach(), expected.detach(), 0.02)
            expected.data.copy_(matrix)
    looks = Mock(side_effect=[None] * 5 + [BrokenPipeError])
    optimizer.newton_schulz.register_forward_pre_hook(looks)
    with pytest.raises(BrokenPipeError):
        optimizer.step()
    assert all(map(torch.equal, ours, theirs)), "not even the first matrix has changed"


def test_processes_with_other_gradients_send_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros stand for a gradient that one process lacks; what all lack stays None."""
    theirs, model = torch.tensor([2.0, 1.0, 0.0, 5.0, 0.0]), nn.Linear(1, 1)
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    monkeypatch.setattr(distributed.dist, "all_reduce", lambda message: message.add_(theirs))
    distributed.all_reduce(loss := torch.tensor(1.0), model.parameters())
    assert [loss.item(), model.weight.grad, model.bias.grad] == [3.0, torch.tensor(5.0), None]


@pytest.mark.usefixtures("shapes_unchecked")
def test_bfloat16_is_near_and_keeps_weights_in_32_bits() -> None:
    """Its eight bits of fraction: a relative error of 2⁻⁹ in each product."""
    model = Transformer(SMALL)
    exact = next(train(Transformer(SMALL), batch_at, CONFIG))
    near = next(train(model, batch_at, CONFIG.replace(precision="bfloat16")))
    assert near.loss != exact.loss
    assert near.loss == pytest.approx(exact.loss, rel=0.02)
    assert {p.dtype for p in model.parameters()} == {torch.float32}


GENERATOR = torch.Generator().manual_seed(1)
LOGITS = torch.randn(3, 5, 11, generator=GENERATOR)
LABELS = torch.randint(11, (3, 5), generator=GENERATOR)
PADDED = LABELS.masked_fill(torch.rand(3, 5, generator=GENERATOR) < 0.4, IGNORE)


@grid("labels, alpha", [LABELS, PADDED], [0.0, 0.1, 0.9])
def test_losses_are_torchs(alpha: float, labels: torch.Tensor) -> None:
    theirs = nn.CrossEntropyLoss(label_smoothing=alpha, ignore_index=IGNORE)
    expected = theirs(LOGITS.movedim(-1, 1), labels)
    assert_close_to(label_smoothing(LOGITS, labels, alpha), expected)
    if alpha == 0:
        assert_close_to(cross_entropy(LOGITS, labels), expected)
    one_per_text = theirs(LOGITS[:, 0], LABELS[:, 0])
    assert_close_to(label_smoothing(LOGITS[:, 0], LABELS[:, 0], alpha), one_per_text)


WRONG: dict[str, Any] = {"steps": 1.5, "batch_size": 5000, "lr": math.nan, "warmup": -1, "seed": -1}
WRONG |= {"schedule": "x", "optimizer": "lion", "weight_decay": -1, "clip": -1}
WRONG |= {"label_smoothing": 1, "beta2": 1, "eps": 0, "momentum": 1, "accumulation": 0}
WRONG |= {"precision": "float16", "compiled": 1}


def test_every_setting_has_its_fault() -> None:
    assert WRONG.keys() == TrainConfig().to_dict().keys()
    for name, wrong in WRONG.items():
        assert f"{name} must be " in (TrainConfig(**{name: wrong}).fault() or "")
