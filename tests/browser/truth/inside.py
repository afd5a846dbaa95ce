"""What the page Inside training claims of a run, made again with torch alone."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from explorer.runs.run import Run
from explorer.tasks import TASKS
from models import Transformer
from models.training import TrainState, seeded, train
from tests.browser.truth.screen import Claim, said
from tests.browser.visiting import Visitor

N = r"([\d.,−e]+\d)"
STEP = 5
"""An update after this one, the fourth snapshot of a tiny run."""


def one_update(visitor: Visitor, run: Run) -> list[Claim]:
    """The mean and the largest loss of a label, in a training of its own."""
    spec, task = run.spec, TASKS[run.spec.task]
    model = Transformer(spec.model, seed=spec.weights_seed)
    state = TrainState.fresh(model, spec.training)
    updates = train(model, lambda at: task.batch(at, spec.training), spec.training, state)
    for _ in range(STEP):
        next(updates)
    batch = task.batch(STEP, spec.training)
    with torch.no_grad(), seeded(spec.training.seed, STEP):
        logits = model(*batch.inputs).flatten(0, -2)
    losses = F.cross_entropy(logits, batch.labels.flatten(), reduction="none")
    known = losses[batch.labels.flatten() >= 0]
    mean, most = said(visitor, rf"their mean, {N} nats, .* The largest is {N} nats")
    return [Claim("mean", mean, float(known.mean())), Claim("largest", most, float(known.max()))]


VIEWS: dict[str, tuple[Callable[[Visitor, Run], list[Claim]], str]] = {
    "One update": (one_update, "update_after=3&update_stage=1"),
}
"""What each view claims of a tiny run, and what its address asks for."""
