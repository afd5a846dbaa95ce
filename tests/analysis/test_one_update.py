"""One update taken apart is the training's own step, and its parts are those of autograd."""

import copy
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.analysis.one_update import by_block, take_apart, token_losses
from explorer.runs.retraining import Trained
from explorer.tasks import TASKS
from models import Transformer
from models.losses import IGNORE
from models.training import TrainConfig, TrainState, seeded, train
from tests.runs.making import tiny_spec

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"clip": 0.0},
    "clipped": {"clip": 0.05, "label_smoothing": 0.1},
    "sgd": {"optimizer": "sgd", "clip": 0.0},
    "muon in parts": {"optimizer": "muon", "accumulation": 2},
}


def trained(name: str, steps: int, **training: Any) -> tuple[Transformer, TrainConfig, TrainState]:
    spec = tiny_spec(name, **training)
    model = Transformer(spec.model, seed=spec.weights_seed)
    state = TrainState.fresh(model, spec.training)
    updates = train(model, lambda at: TASKS[name].batch(at, spec.training), spec.training, state)
    for _ in range(steps):
        next(updates)
    return model, spec.training, state


@pytest.mark.parametrize("name", ["reverse", "induction", "negation"])
@pytest.mark.parametrize("how", SETTINGS)
def test_it_is_the_step_of_the_training_bit_for_bit(name: str, how: str) -> None:
    model, config, state = trained(name, 3, **SETTINGS[how])
    other = Trained(model, state, config).copy()
    task = TASKS[name]
    found = take_apart(model, lambda at: task.batch(at, config), config, state)
    report = next(train(other.model, lambda at: task.batch(at, config), config, other.state))
    same = ("step", "loss", "lr", "grad_norm")
    assert [getattr(found.report, each) for each in same] == [
        getattr(report, each) for each in same
    ]
    for each, (_, parameter) in zip(
        found.after.values(), other.model.named_parameters(), strict=True
    ):
        assert torch.equal(each, parameter.detach())
    assert state.step == other.state.step == found.step + 1
    assert not model._forward_hooks


def test_its_losses_and_gradients_are_those_of_autograd_by_hand() -> None:
    model, config, state = trained("reverse", 2, clip=0.05, label_smoothing=0.1)
    task, by_hand = TASKS["reverse"], copy.deepcopy(model)
    batch = task.batch(2, config)
    found = take_apart(model, lambda at: task.batch(at, config), config, state)
    with seeded(config.seed, 2):
        logits = by_hand.train()(*batch.inputs)
    logs = logits.double().log_softmax(-1)
    known = batch.labels != IGNORE
    own = -logs.gather(-1, batch.labels.clamp_min(0)[..., None])[..., 0]
    losses = 0.9 * own - 0.1 * logs.mean(-1)
    torch.testing.assert_close(found.losses[known].double(), losses[known], atol=1e-5, rtol=1e-5)
    assert bool(found.losses[~known].isnan().all())
    losses[known].mean().backward()
    for name, each in by_hand.named_parameters():
        assert each.grad is not None
        torch.testing.assert_close(found.gradients[name], each.grad, atol=1e-5, rtol=1e-4)
    total = math.sqrt(sum(each.gradient_norm**2 for each in found.parameters()))
    assert total == pytest.approx(found.report.grad_norm, rel=1e-5)
    assert found.scale == pytest.approx(0.05 / total, rel=1e-4)
    with torch.no_grad(), seeded(config.seed, 2):
        after = F.cross_entropy(
            model(*batch.inputs).flatten(0, -2), batch.labels.flatten(), label_smoothing=0.1
        )
    assert found.loss_after == pytest.approx(after.item(), rel=1e-6)


def test_norms_of_a_block_are_those_of_all_its_numbers_together() -> None:
    model, config, state = trained("reverse", 1)
    found = take_apart(model, lambda at: TASKS["reverse"].batch(at, config), config, state)
    blocks = {each.name: each for each in by_block(found.parameters())}
    assert sum(each.count for each in blocks.values()) == model.n_parameters

    def together(values: dict[str, Tensor]) -> float:
        inside = [v.flatten() for n, v in values.items() if n.startswith("encoder.blocks.0.mlp.")]
        return float(torch.cat(inside).double().norm())

    block = blocks["encoder layer 0 feed-forward"]
    assert block.gradient_norm == pytest.approx(together(found.gradients))
    moved = {name: found.after[name] - found.before[name] for name in found.before}
    assert block.ratio == pytest.approx(together(moved) / together(found.before), rel=1e-5)


def test_plain_gradient_descent_moves_every_weight_against_its_gradient() -> None:
    model, config, state = trained("reverse", 0, optimizer="sgd", weight_decay=0.0)
    found = take_apart(model, lambda at: TASKS["reverse"].batch(at, config), config, state)
    assert found.against_gradient("decoder.blocks.0.mlp.up_proj.weight") == 1.0
    expected = -found.report.lr * found.scale * found.gradients["head.weight"]
    moved = found.after["head.weight"] - found.before["head.weight"]
    torch.testing.assert_close(moved, expected, atol=1e-7, rtol=1e-2)


def test_a_label_that_is_left_out_has_no_loss() -> None:
    logits, labels = torch.zeros(2, 3, 4), torch.tensor([[0, 1, IGNORE], [IGNORE, 2, 3]])
    found = token_losses(logits, labels)
    assert found.isnan().tolist() == (labels == IGNORE).tolist()
    assert found[0, 0] == pytest.approx(math.log(4))


def test_in_parts_its_losses_are_the_training_s_and_nothing_moves_without_a_rate() -> None:
    model, config, state = trained("reverse", 2, accumulation=2, weight_decay=0.0)
    config = config.replace(lr=1e-8)
    found = take_apart(model, lambda at: TASKS["reverse"].batch(at, config), config, state)
    mean = float(found.losses[~found.losses.isnan()].mean())
    assert mean == pytest.approx(found.report.loss, rel=1e-6)
    assert found.loss_after == pytest.approx(found.report.loss, rel=1e-5), "the same dropout"


def test_what_is_frozen_has_no_gradient_and_stays() -> None:
    model, config, _ = trained("reverse", 0)
    dict(model.named_parameters())["head.weight"].requires_grad_(False)
    state = TrainState.fresh(model, config)
    found = take_apart(model, lambda at: TASKS["reverse"].batch(at, config), config, state)
    assert not bool(found.gradients["head.weight"].any())
    assert torch.equal(found.before["head.weight"], found.after["head.weight"])
