"""Gradient noise, dead units and the loss landscape, against their definitions."""

import math

import pytest
import torch

from explorer.analysis.dead_units import LayerUnits, layer_units
from explorer.analysis.gradient_noise import gradients, noise_scale
from explorer.analysis.loss_landscape import losses, random_plane, training_plane, weights_of
from explorer.tasks import TASKS
from models import Transformer
from models.training import batch_loss
from models.transformer import evaluating
from tests.runs.making import tiny_spec

SPEC = tiny_spec()
TASK = TASKS[SPEC.task]
BATCH = TASK.batch(0, SPEC.training)


def model(seed: int = 0) -> Transformer:
    return Transformer(SPEC.model, seed=seed)


def test_noise_scale_is_the_variance_over_the_squared_mean() -> None:
    torch.manual_seed(0)
    found = [torch.tensor([3.0, 4.0]) + torch.randn(2) for _ in range(64)]
    every = torch.stack(found).double()
    variance = float(every.var(dim=0).sum())
    made = noise_scale(found, batch_size=8)
    assert made.trace == pytest.approx(8 * variance)
    squared = float(every.mean(0).square().sum()) - variance / 64
    assert made.squared_gradient == pytest.approx(squared)
    assert made.scale == pytest.approx(8 * variance / squared)
    assert made.low <= made.scale <= made.high


def test_gradients_that_are_noise_alone_have_no_scale() -> None:
    found = [torch.tensor([1.0]), torch.tensor([-1.0])] * 4
    assert math.isnan(noise_scale(found, 4).scale)


def test_gradients_are_those_of_autograd_and_leave_the_model_as_it_was() -> None:
    made = model().train()
    (found,) = gradients(made, lambda at: TASK.batch(at, SPEC.training), 1)
    assert made.training
    with evaluating(made):
        pass
    made.eval()
    batch_loss(made, BATCH, 0.0).backward()
    grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in made.parameters()]
    torch.testing.assert_close(found, torch.cat([g.flatten() for g in grads]))


def test_a_unit_whose_bias_is_far_below_zero_is_dead() -> None:
    made = model()
    mlp = made.get_submodule("encoder.blocks.0.mlp")
    with torch.no_grad():
        mlp.get_parameter("up_proj.bias")[3] = -1e4
    units = layer_units(made, BATCH.inputs)
    assert [(each.stack, each.layer) for each in units] == [("encoder", 0), ("decoder", 0)]
    assert bool(units[0].dead[3])
    assert not bool(units[1].dead[3])


def test_without_an_exact_zero_a_unit_is_dead_below_a_share_of_the_largest() -> None:
    layer = LayerUnits("decoder", 0, torch.tensor([1.0, 0.5, 0.009]), is_exact=False)
    assert layer.dead.tolist() == [False, False, True]
    assert layer.share == pytest.approx(1 / 3)


def test_the_middle_of_a_random_plane_is_the_model_s_own_loss() -> None:
    made = model()
    plane = random_plane([weights_of(made)], seed=1)
    with evaluating(made):
        own = batch_loss(made, BATCH)
    rows = torch.stack([*losses(made, BATCH, plane, [-0.5, 0.0, 0.5], [0.0, 1.0])])
    assert rows.shape == (2, 3)
    torch.testing.assert_close(rows[0, 1], own)
    for name, value in weights_of(made).items():
        direction = plane.first[name]
        assert direction.dim() > 1 or not bool(direction.any())
        if direction.dim() > 1:
            torch.testing.assert_close(direction.norm(dim=1), value.norm(dim=1))


def test_a_training_in_a_plane_is_found_and_its_snapshots_have_their_own_losses() -> None:
    start, end = model(0), weights_of(model(1))
    ways = [weights_of(model(seed)) for seed in (2, 3)]
    snapshots = [
        {name: end[name] + x * (ways[0][name] - end[name]) + y * (ways[1][name] - end[name])
         for name in end}
        for x, y in ((1.0, 0.2), (0.3, 0.7), (0.1, 0.1), (0.0, 0.0))
    ]  # fmt: skip
    plane = training_plane(snapshots)
    assert plane.explained == pytest.approx(1.0, abs=1e-5)
    last = model(1)
    for snapshot, (x, y) in zip(snapshots, plane.path.tolist(), strict=True):
        (row,) = losses(last, BATCH, plane, [x], [y])
        start.load_state_dict(snapshot, strict=False)
        with evaluating(start):
            torch.testing.assert_close(row[0], batch_loss(start, BATCH), rtol=1e-4, atol=1e-4)
