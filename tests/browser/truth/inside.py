"""What the page Inside training claims of a run, made again with torch alone."""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from explorer.runs.run import Run
from explorer.tasks import TASKS
from models import Transformer, load_checkpoint, trace
from models.training import TrainState, seeded, train
from tests.browser.truth.screen import Claim, cells, facts, said
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


def weights_at(run: Run, step: int) -> Transformer:
    return load_checkpoint(dict(run.snapshots())[step]).model.eval()


def ends(run: Run) -> tuple[int, int]:
    steps = [*dict(run.snapshots())]
    return steps[0], steps[-1]


def head_scores(visitor: Visitor, run: Run) -> list[Claim]:
    """The mean over the rows of their largest weight, of the encoder's heads."""
    task, steps = TASKS[run.spec.task], [*dict(run.snapshots())]
    source = torch.tensor([task.tokenizer.ids(task.example)])
    target = torch.tensor([[task.tokenizer.bos_id]])
    found = [
        trace(weights_at(run, step), source, target).weights("encoder.0.self_attn")[0]
        for step in steps
    ]
    values = torch.stack([each.amax(-1).mean(-1) for each in found], dim=1)
    return cells(visitor, "scores_over_steps", values, (0, 0), (1, len(steps) - 1), step=0)


def spectra(visitor: Visitor, run: Run) -> list[Claim]:
    """The stable rank of the first query projection, before and after."""
    shown = said(visitor, rf"goes from {N} to {N}")
    true = []
    for step in ends(run):
        name = next(n for n, _ in weights_at(run, step).named_parameters() if "q_proj" in n)
        matrix = weights_at(run, step).get_parameter(name).detach().double()
        squares = torch.linalg.svdvals(matrix).square()
        true.append(float(squares.sum() / squares[0]))
    return [Claim("stable rank", *each) for each in zip(shown, true, strict=True)]


def norms(visitor: Visitor, run: Run) -> list[Claim]:
    shown = said(visitor, rf"goes from {N} to {N}")
    true = [
        float(torch.cat([p.flatten() for p in weights_at(run, step).parameters()]).double().norm())
        for step in ends(run)
    ]
    return [Claim("norm", *each) for each in zip(shown, true, strict=True)]


def landscape(visitor: Visitor, run: Run) -> list[Claim]:
    """The share of the way of the training in its two main directions, by singular values."""
    every = [
        torch.cat([p.detach().flatten() for p in weights_at(run, step).parameters()]).double()
        for step in dict(run.snapshots())
    ]
    squares = torch.linalg.svdvals(torch.stack(every[:-1]) - every[-1]).square()
    (share,) = said(visitor, rf"{N}% of the squared distances")
    return [Claim("explained", share, 100 * float(squares[:2].sum() / squares.sum()))]


def noise(visitor: Visitor, run: Run) -> list[Claim]:
    """The variance of the gradients of 32 batches, by its definition."""
    spec, task, (_, last) = run.spec, TASKS[run.spec.task], ends(run)
    model, found = weights_at(run, last), []
    for at in range(32):
        batch = task.batch(last + at, spec.training)
        loss = F.cross_entropy(
            model(*batch.inputs).flatten(0, -2),
            batch.labels.flatten(),
            label_smoothing=spec.training.label_smoothing,
        )
        grads = torch.autograd.grad(loss, [*model.parameters()], allow_unused=True)
        found.append(torch.cat([g.flatten() for g in grads if g is not None]).double())
    every = torch.stack(found)
    variance = float(every.var(dim=0).sum())
    squared, spread = float(every.mean(0).square().sum()) - variance / 32, variance
    trace_of = spec.training.batch_size * spread
    shown = facts(visitor, "trace of the covariance")
    return [
        Claim("squared norm", shown["‖G‖²"], squared),
        Claim("trace", shown["trace of the covariance"], trace_of),
    ]


def dead(visitor: Visitor, run: Run) -> list[Claim]:
    task, (_, last) = TASKS[run.spec.task], ends(run)
    inputs = [ids[:64] for ids in task.held_out_batch.inputs]
    passed = trace(weights_at(run, last), *inputs)
    count, units = 0, 0
    for name, values in passed.values.items():
        if name.endswith("mlp.hidden"):
            ids = inputs[0] if name.startswith("encoder") else inputs[1]
            largest = values[ids != task.tokenizer.pad_id].amax(0)
            count, units = count + int((largest <= 0).sum()), units + len(largest)
    found, of = said(visitor, r"(\d+) of ([\d,]+) units are dead")
    return [Claim("dead", found, count), Claim("units", of, units)]


VIEWS: dict[str, tuple[Callable[[Visitor, Run], list[Claim]], str]] = {
    "One update": (one_update, "update_after=4&update_stage=1"),
    "Head scores": (head_scores, "scores_part=Encoder"),
    "Singular values": (spectra, ""),
    "Weight norms": (norms, ""),
    "Loss landscape": (landscape, ""),
    "Gradient noise": (noise, ""),
    "Dead units": (dead, ""),
}
"""What each view claims of a tiny run, and what its address asks for."""
