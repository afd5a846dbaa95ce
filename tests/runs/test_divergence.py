"""A run that loses its model: it is seen, named and stopped, and what was good stays."""

import math
from pathlib import Path

import pytest
import torch

from explorer.runs.recorder import LOST, POOR, STEPS_OF_PATIENCE, Diverged, Health
from explorer.runs.run import Run
from explorer.runs.spec import RunError
from explorer.runs.worker import train_to_end
from models import Transformer, load_checkpoint
from models.training import Report, batch_loss
from models.transformer import evaluating
from tests.tiny import tiny_run, tiny_spec


def kept_weights(run: Run) -> list[Path]:
    """Every folder of the run that holds weights."""
    return [path.parent for path in run.folder.rglob("model.safetensors")]


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "muon"])
def test_a_rate_of_a_billion_stops_and_good_weights_stay(optimizer: str, tmp_path: Path) -> None:
    run = tiny_run(tmp_path, lr=1e9, warmup=0, steps=300, optimizer=optimizer)
    with pytest.raises(RunError, match="The training diverged: "):
        train_to_end(run.folder)
    status = run.status()
    assert status.state == "failed"
    assert status.message.count(".\n") == 0
    kept = "; the model of step 0 is kept, and a lower learning rate may help."
    assert status.message.endswith(kept)
    assert status.step < 1 + STEPS_OF_PATIENCE
    task = run.task()
    assert kept_weights(run)
    for folder in kept_weights(run):
        model = load_checkpoint(folder).model
        assert all(weight.isfinite().all() for weight in model.parameters())
        with evaluating(model):
            loss = batch_loss(model, task.batch(0, run.spec.training)).item()
        assert loss < POOR * math.log(run.spec.model.vocab_size)
    latest = run.latest()
    assert latest is not None
    assert latest.name == "step-000000"


def test_the_way_out_is_one(tmp_path: Path) -> None:
    """The rate is lowered, and the run goes on from its last good state to its end."""
    run = tiny_run(tmp_path, lr=1e9, warmup=0, steps=5)
    with pytest.raises(RunError):
        train_to_end(run.folder)
    run.change(lr=1e-3)
    run.command("resume")
    assert train_to_end(run.folder) == "done"
    assert run.status().message == ""
    assert [step for step, _ in run.metrics().losses()] == [1, 2, 3, 4, 5]


def test_a_last_update_that_loses_the_model_makes_no_finished_one(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, lr=1e9, warmup=0, steps=1)
    with pytest.raises(RunError, match="the last update ruined the weights"):
        train_to_end(run.folder)
    assert run.status().state == "failed"
    assert run.checkpoint() is None


def test_what_is_poor_is_given_time_and_what_is_lost_none() -> None:
    config = tiny_spec().model
    guess = math.log(config.vocab_size)

    def report(loss: float, norm: float = 1.0) -> Report:
        return Report(7, loss, 0.1, norm, 0.0)

    health = Health(config)
    for _ in range(3):  # as often as it recovers
        for _ in range(STEPS_OF_PATIENCE - 1):
            health.after(report(2 * POOR * guess))
        health.after(report(guess))
    for _ in range(STEPS_OF_PATIENCE - 1):
        health.after(report(2 * POOR * guess))
    with pytest.raises(Diverged, match=r"the loss is .* at step 7, while guessing"):
        health.after(report(2 * POOR * guess))
    for lost, norm, said in (
        (2 * LOST * guess, 1.0, "the loss is"),
        (math.nan, 1.0, "the loss is not finite"),
        (math.inf, 1.0, "the loss is not finite"),
        (guess, math.nan, "the gradients are not finite"),
    ):
        with pytest.raises(Diverged, match=said):
            Health(config).after(report(lost, norm))


def test_weights_that_are_no_numbers_are_never_worth_keeping(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    model, health = Transformer(run.spec.model), Health(run.spec.model)
    batch = run.task().batch(0, run.spec.training)
    assert health.is_good(model, batch)
    with torch.no_grad():
        next(model.parameters())[0] = math.nan
    assert not health.is_good(model, batch)
