"""What is measured of a training: against autograd, the training's own step, and definitions."""

import copy
import math
from operator import attrgetter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.analysis.dead_units import LayerUnits, layer_units
from explorer.analysis.generalisation import MOST_EXAMPLES, generalisation
from explorer.analysis.gradient_noise import gradients, noise_scale
from explorer.analysis.loss_landscape import losses, random_plane, training_plane, weights_of
from explorer.analysis.one_update import OneUpdate, by_block, take_apart
from explorer.analysis.teacher_forcing import teacher_forcing
from explorer.runs.retraining import ModelInTraining
from explorer.tasks import TASKS
from models import Transformer, TransformerConfig
from models.config import GenerationConfig, TrainConfig
from models.generation import generate
from models.losses import IGNORE, cross_entropy
from models.training import TrainState, batch_loss, seeded, train
from models.transformer import evaluating
from tests.closeness import assert_close_to
from tests.grids import grid
from tests.tiny import shake, tiny_spec

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


@grid("how, name", SETTINGS, ["reverse", "induction", "negation"])
def test_it_is_the_step_of_the_training_bit_for_bit(name: str, how: str) -> None:
    model, config, state = trained(name, 3, **SETTINGS[how])
    other = ModelInTraining(model, state, config).copy()
    task = TASKS[name]
    found = take_apart(model, lambda at: task.batch(at, config), config, state)
    report = next(train(other.model, lambda at: task.batch(at, config), config, other.state))
    same = attrgetter("step", "loss", "lr", "grad_norm")
    assert same(found.report) == same(report)
    for each, parameter in zip(found.after.values(), other.model.parameters(), strict=True):
        assert torch.equal(each, parameter.detach())
    assert state.step == other.state.step == found.step + 1


def test_its_losses_and_gradients_are_those_of_autograd_by_hand() -> None:
    model, config, state = trained("reverse", 2, clip=0.05, label_smoothing=0.1)
    task, by_hand = TASKS["reverse"], copy.deepcopy(model)
    batch = task.batch(2, config)
    found = take_apart(model, lambda at: task.batch(at, config), config, state)
    with seeded(config.seed, 2):
        logits = by_hand.train()(*batch.inputs)
    logs, known = logits.double().log_softmax(-1), batch.labels != IGNORE
    own = -logs.gather(-1, batch.labels.clamp_min(0)[..., None])[..., 0]
    losses = 0.9 * own - 0.1 * logs.mean(-1)
    assert_close_to(found.losses[known], losses[known].float())
    assert not known.all()
    assert bool(found.losses[~known].isnan().all()), "a label that is left out has no loss"
    losses[known].mean().backward()
    named = by_hand.named_parameters()
    made = {name: each.grad for name, each in named if each.grad is not None}
    assert made.keys() == found.gradients.keys()
    theirs = torch.cat([made[name].flatten() for name in found.gradients])
    assert_close_to(torch.cat([each.flatten() for each in found.gradients.values()]), theirs)
    total = math.sqrt(sum(each.gradient_norm**2 for each in found.parameters()))
    assert total == pytest.approx(found.report.grad_norm, rel=1e-5)
    assert found.scale == pytest.approx(0.05 / total, rel=1e-4)
    with torch.no_grad(), seeded(config.seed, 2):
        logits, labels = model(*batch.inputs).flatten(0, -2), batch.labels.flatten()
        after = F.cross_entropy(logits, labels, label_smoothing=0.1)
    assert found.loss_after == pytest.approx(after.item(), rel=1e-5)


def taken_apart(model: Transformer, config: TrainConfig, state: TrainState) -> OneUpdate:
    return take_apart(model, lambda at: TASKS["reverse"].batch(at, config), config, state)


def test_norms_of_a_block_are_those_of_all_its_numbers_together() -> None:
    model, config, state = trained("reverse", 1)
    found = taken_apart(model, config, state)
    blocks = {each.name: each for each in by_block(found.parameters())}
    assert sum(each.count for each in blocks.values()) == model.n_parameters

    def norm_of(values: dict[str, Tensor]) -> float:
        inside = [v.flatten() for n, v in values.items() if n.startswith("encoder.blocks.0.mlp.")]
        return float(torch.cat(inside).double().norm())

    block = blocks["encoder layer 0 feed-forward"]
    assert block.gradient_norm == pytest.approx(norm_of(found.gradients), rel=1e-5)
    moved = {name: found.after[name] - found.before[name] for name in found.before}
    assert block.ratio == pytest.approx(norm_of(moved) / norm_of(found.before), rel=1e-5)


def test_in_parts_its_losses_are_the_training_s_and_nothing_moves_without_a_rate() -> None:
    model, config, state = trained("reverse", 2, accumulation=2, weight_decay=0.0)
    found = taken_apart(model, config.replace(lr=1e-8), state)
    mean = float(found.losses[~found.losses.isnan()].mean())
    assert mean == pytest.approx(found.report.loss, rel=1e-5)
    assert found.loss_after == pytest.approx(found.report.loss, rel=1e-5), "the same dropout"


def test_what_is_frozen_stays_and_gradient_descent_moves_the_rest_against_its_gradient() -> None:
    model, config, _ = trained("reverse", 0, optimizer="sgd", weight_decay=0.0)
    frozen, moved = "head.weight", "decoder.blocks.0.mlp.up_proj.weight"
    model.get_parameter(frozen).requires_grad_(False)
    found = taken_apart(model, config, TrainState.fresh(model, config))
    assert not bool(found.gradients[frozen].any())
    assert torch.equal(found.before[frozen], found.after[frozen])
    assert found.against_gradient(moved) == 1.0
    expected = -found.report.lr * found.scale * found.gradients[moved]
    # Few digits are left of so small a difference.
    assert_close_to(found.after[moved] - found.before[moved], expected, 1e-2)


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
    found = [torch.tensor([1.0]), torch.tensor([-1.0])] * 4
    assert math.isnan(noise_scale(found, 4).scale)


def test_gradients_are_those_of_autograd_and_leave_the_model_as_it_was() -> None:
    made = model().train()
    (found,) = gradients(made, lambda at: TASK.batch(at, SPEC.training), 1)
    assert made.training
    made.eval()
    batch_loss(made, BATCH, 0.0).backward()
    grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in made.parameters()]
    assert_close_to(found, torch.cat([g.flatten() for g in grads]))


def test_a_unit_whose_bias_is_far_below_zero_is_dead() -> None:
    """Without an exact zero: whose activations are below a share of the largest."""
    made = model()
    mlp = made.get_submodule("encoder.blocks.0.mlp")
    with torch.no_grad():
        mlp.get_parameter("up_proj.bias")[3] = -1e4
    units = layer_units(made, BATCH.inputs)
    assert [(each.stack, each.layer) for each in units] == [("encoder", 0), ("decoder", 0)]
    assert bool(units[0].dead[3])
    assert not bool(units[1].dead[3])
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
    assert_close_to(rows[0, 1], own)
    for name, value in weights_of(made).items():
        direction = plane.first[name]
        assert direction.dim() > 1 or not bool(direction.any())
        if direction.dim() > 1:
            assert_close_to(direction.norm(dim=1), value.norm(dim=1))


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
            assert_close_to(row[0], batch_loss(start, BATCH))


def test_both_losses_are_those_of_the_weights_as_they_are() -> None:
    task = TASKS["negation"]
    model = Transformer(task.model.replace(dropout=0.5)).train()
    training = task.batch(3, task.training)
    held_out = task.batch(4, task.training.replace(batch_size=MOST_EXAMPLES + 9))
    found = generalisation(model, training, held_out)
    assert model.training, "it goes on as it was"
    model.eval()
    with torch.no_grad():
        first = cross_entropy(model(*training.inputs), training.labels)
        logits = model(*(ids[:MOST_EXAMPLES] for ids in held_out.inputs))
        rest = cross_entropy(logits, held_out.labels[:MOST_EXAMPLES])
    assert [found.training, found.held_out] == pytest.approx([float(first), float(rest)], rel=1e-5)
    assert found.gap == found.held_out - found.training


END = 1
SOURCES = {"decoder": None, "encoder-decoder": torch.tensor([[2, 3, 4]])}
TARGET = torch.tensor([0, 5, 6, 7, 3, 2, END])


def writer(kind: str) -> Transformer:
    config = TransformerConfig(
        kind=kind, n_layers=2, vocab_size=9, d_model=16, n_heads=2, d_ff=24, max_len=16,
        bos_id=0, generation=GenerationConfig(eos_ids=(END,)),
    )  # fmt: skip
    return shake(Transformer(config, seed=1), by=0.6).eval()


def test_both_ways_are_the_models_own() -> None:
    for kind, given in (("decoder", 1), ("decoder", 3), ("encoder-decoder", 1)):
        source = SOURCES[kind]
        made, steps = writer(kind), len(TARGET) - given
        found = teacher_forcing(made, source, TARGET, given)
        assert found.targets == tuple(TARGET[given:].tolist())
        assert found.inputs == tuple(TARGET[given - 1 : -1].tolist())
        inputs = [each for each in (source, TARGET[None, :-1]) if each is not None]
        with torch.no_grad():
            logits = made(*inputs)[0, given - 1 :]
        assert found.predicted == tuple(logits.argmax(-1).tolist()), kind
        own = logits.log_softmax(-1)[range(steps), TARGET[given:]]
        assert_close_to(found.nats, -own)
        assert_close_to(found.probabilities, own.exp())
        assert found.free_inputs[1:] == found.generated[:-1], kind
        prompt = TARGET[None, :given] if source is None else source
        alone = generate(made, prompt, max_length=steps, greedy=True)
        assert found.generated == tuple(int(step.ids) for step in alone), kind


def test_its_own_writing_never_departs_from_itself() -> None:
    for kind, source in SOURCES.items():
        made = writer(kind)
        prompt = torch.tensor([[0]]) if source is None else source
        alone = [int(step.ids) for step in generate(made, prompt, max_length=5, greedy=True)]
        found = teacher_forcing(made, source, torch.tensor([0, *alone]), 1)
        assert found.diverges_at is None, kind
        assert found.predicted == found.targets == found.generated, kind
        other = 2 if alone[-1] != 2 else 3
        changed = teacher_forcing(made, source, torch.tensor([0, *alone[:-1], other]), 1)
        assert changed.diverges_at == len(alone) - 1, kind
    for given in (0, 3, 4):
        with pytest.raises(ValueError, match=f"tokens, not {given}"):
            teacher_forcing(writer("decoder"), None, TARGET[:3], given)
