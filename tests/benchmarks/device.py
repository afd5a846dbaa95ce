"""Whether training works on this machine's accelerator: `python -m tests.benchmarks.device`.

Not a benchmark of the table: most machines have none. Prints a line for each check, and exits
with 1 where one fails. Takes about a minute, most of it for compiling.
"""

import math
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import torch

from models import Transformer, TransformerConfig, load_checkpoint, save_checkpoint
from models.loading.checkpoint import load_state
from models.training import Batch, Report, TrainConfig, TrainState, train

CONFIG = TransformerConfig(
    vocab_size=64, d_model=128, n_layers=4, n_heads=4, d_ff=512, max_len=64, dropout=0.1
)
HOW = TrainConfig(steps=60, batch_size=32, lr=3e-3, warmup=5)


def batch_at(step: int) -> Batch:
    """Say every token again, so that a few steps teach it."""
    ids = torch.randint(1, 64, (32, 64), generator=torch.Generator().manual_seed(step))
    return Batch((ids,), ids)


def learns(device: torch.device, how: TrainConfig) -> str:
    begun = time.perf_counter()
    reports: list[Report] = list(train(Transformer(CONFIG).to(device), batch_at, how))
    losses = [report.loss for report in reports]
    assert all(map(math.isfinite, losses)), losses
    assert losses[-1] < losses[0] / 2, losses
    later = sum(report.seconds for report in reports[20:]) / len(reports[20:])
    seconds = time.perf_counter() - begun
    return f"loss {losses[0]:.3f} → {losses[-1]:.3f}, {1 / later:.0f} steps/s, {seconds:.1f} s"


def resumes(device: torch.device) -> str:
    """Thirty steps, a checkpoint, thirty more from it: beside sixty, and opened on the CPU."""
    whole, stopped = (Transformer(CONFIG).to(device) for _ in range(2))
    list(train(whole, batch_at, HOW))
    state = TrainState.fresh(stopped, HOW)
    list(islice(train(stopped, batch_at, HOW, state), 30))
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(Path(folder) / "one", stopped, state=state)
        opened = load_checkpoint(Path(folder) / "one").model
        assert next(opened.parameters()).device.type == "cpu"
        for name, weight in opened.named_parameters():
            assert weight.equal(stopped.get_parameter(name).cpu()), name
        model = opened.to(device)
        list(train(model, batch_at, HOW, load_state(Path(folder) / "one", model, HOW)))
    apart = max(
        (weight - whole.get_parameter(name)).abs().max().item()
        for name, weight in model.named_parameters()
    )
    assert apart <= 1e-6, apart
    return "bit for bit the same" if apart == 0 else f"largest difference {apart:.2g}"


def is_recorded(device: torch.device) -> str:
    """A run of a task by the worker, within its limits, whose snapshots open on the CPU."""
    from explorer.runs.run import create
    from explorer.runs.spec import RunSpec
    from explorer.runs.worker import device as chosen
    from explorer.runs.worker import train_to_end
    from explorer.tasks import TASKS

    assert chosen().type == device.type, chosen()
    task = TASKS["reverse"]
    with tempfile.TemporaryDirectory() as folder:
        spec = RunSpec("reverse", task.model, replace(task.training, steps=50))
        run = create(Path(folder), spec)
        ended = train_to_end(run.folder)
        status = run.status()
        assert ended == "done", status.message
        losses = [loss for _, loss in run.metrics().losses()]
        assert losses[-1] < losses[0], losses
        for _, snapshot in run.snapshots():
            model = load_checkpoint(snapshot).model
            assert all(weight.isfinite().all() for weight in model.parameters())
            assert math.isfinite(task.measure(model).value)
    return f"loss {losses[0]:.3f} → {losses[-1]:.3f}, {len(losses) / status.seconds:.0f} steps/s"


def main() -> int:
    found = torch.accelerator.current_accelerator(check_available=True)
    print(f"torch {torch.__version__}, accelerator: {found or 'none'}", flush=True)
    if found is None:
        return 0
    checks: dict[str, Callable[[], str]] = {
        "the CPU beside it": partial(learns, torch.device("cpu"), HOW.replace(steps=30)),
        "float32": partial(learns, found, HOW),
        "bfloat16": partial(learns, found, HOW.replace(precision="bfloat16")),
        "muon": partial(learns, found, HOW.replace(optimizer="muon", lr=0.02)),
        "accumulation of 4": partial(learns, found, HOW.replace(accumulation=4)),
        "compiled": partial(learns, found, HOW.replace(compiled=True)),
        "compiled bfloat16": partial(
            learns, found, HOW.replace(compiled=True, precision="bfloat16")
        ),
        "resumed": partial(resumes, found),
        "a run of the worker": partial(is_recorded, found),
    }
    failed = 0
    for name, check in checks.items():
        try:
            print(f"ok      {name}: {check()}", flush=True)
        except ImportError as error:
            print(f"skipped {name}: {error}", flush=True)
        except (ArithmeticError, AssertionError, AttributeError, OSError, RuntimeError, ValueError):
            failed += 1
            print(f"FAILED  {name}:\n{traceback.format_exc(limit=-4)}", flush=True)
    print(f"{len(checks) - failed} of {len(checks)} checks passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
