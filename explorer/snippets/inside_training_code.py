"""The lines behind the page Inside training: a run, one of its updates, and its snapshots."""

from __future__ import annotations

from explorer.runs.run import Run
from explorer.snippets.pass_code import hint, script


def run_lines(run: Run) -> list[str]:
    """After these lines `task` is that of the `run`. A key in its name is not said."""
    return [
        f"run = Run({run.title!r}){hint(run.folder)}",
        "spec = run.spec",
        "task = run.task()",
    ]


RUN = ("from explorer.runs.run import Run",)


def update_lines(run: Run, step: int, *, is_saved: bool) -> str:
    """The update after this step, from the saved state or trained again from step 0."""
    again = [
        "began = untrained(spec)",
        f"for _ in trained_on(began, task, spec, {step}):",
        "    pass",
    ]
    begin = "saved" if is_saved else "trained_on, untrained"
    lines = [
        *run_lines(run),
        "torch.set_num_threads(1)  # like the worker: sums in another order round otherwise",
        *(["began = saved(run, spec)"] if is_saved else again),
        "training = spec.training",
        "update = take_apart(",
        "    began.model, lambda at: task.batch(at, training), training, began.state",
        ")",
        "print(update.report, update.loss_after)",
        "for each in by_block(update.parameters()):",
        "    print(each.name, each.gradient_norm, each.ratio)",
    ]
    return script(
        lines,
        *RUN,
        "from explorer.analysis.one_update import by_block, take_apart",
        f"from explorer.runs.retraining import {begin}",
    )
