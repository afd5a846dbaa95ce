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
        "began = untrained(run, spec)",
        f"for _ in trained_on(began, run, task, spec, {step}):",
        "    pass",
    ]
    begin = "saved, training_at" if is_saved else "trained_on, training_at, untrained"
    lines = [
        *run_lines(run),
        "torch.set_num_threads(1)  # like the worker: sums in another order round otherwise",
        *(["began = saved(run, spec)"] if is_saved else again),
        f"training = training_at(run, spec, {step})",
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


SNAPSHOTS = (*RUN, "from explorer.runs.open_run import open_folder")


def snapshot_lines(run: Run) -> list[str]:
    """After these lines `models` are those of the snapshots, by their step."""
    return [
        *run_lines(run),
        "models = {step: open_folder(folder) for step, folder in run.snapshots()}",
    ]


def head_score_lines(run: Run, text: str, part: str, metric: str) -> str:
    """One score of every head at every step."""
    lines = [
        *snapshot_lines(run),
        "for step, opened in models.items():",
        f"    found = join_layers([*metrics_by_layer(run_text(opened, {text!r}), {part!r})])",
        f"    print(step, found.values[{metric!r}])",
    ]
    return script(
        lines,
        *SNAPSHOTS,
        "from explorer.analysis.head_metrics import join_layers, metrics_by_layer",
        "from explorer.inference.forward_pass import run_text",
    )


def spectrum_lines(run: Run, name: str) -> str:
    """The singular values of one matrix at every step."""
    lines = [
        *snapshot_lines(run),
        "for step, opened in models.items():",
        f"    found = singular_values_of(opened.model.get_parameter({name!r}))",
        "    print(step, found.values[:6], found.stable_rank)",
    ]
    imports = "from explorer.analysis.singular_values import singular_values_of"
    return script(lines, *SNAPSHOTS, imports)


def norm_lines(run: Run) -> str:
    """The norm of every parameter at every step."""
    lines = [
        *snapshot_lines(run),
        "for step, opened in models.items():",
        "    for name, parameter in opened.model.named_parameters():",
        "        print(step, name, parameter.norm().item())",
    ]
    return script(lines, *SNAPSHOTS)


def unit_lines(run: Run) -> str:
    """The share of dead units of every layer at every step."""
    lines = [
        *snapshot_lines(run),
        "inputs = [ids[:64] for ids in task.held_out_batch.inputs]",
        "for step, opened in models.items():",
        "    for each in layer_units(opened.model, inputs):",
        "        print(step, each.stack, each.layer, each.share)",
    ]
    return script(lines, *SNAPSHOTS, "from explorer.analysis.dead_units import layer_units")


def noise_lines(run: Run, batches: int) -> str:
    """The gradient noise scale at every step."""
    lines = [
        *snapshot_lines(run),
        "for step, opened in models.items():",
        "    training = training_at(run, spec, step)",
        "    found = gradients(",
        "        opened.model, lambda at: task.batch(step + at, training), "
        f"{batches}, training.label_smoothing",
        "    )",
        "    print(step, noise_scale([*found], training.batch_size))",
    ]
    return script(
        lines,
        *SNAPSHOTS,
        "from explorer.analysis.gradient_noise import gradients, noise_scale",
        "from explorer.runs.retraining import training_at",
    )


def landscape_lines(run: Run, *, is_random: bool) -> str:
    """The loss on a plane around the last snapshot."""
    plane = "random_plane(weights, seed=0)" if is_random else "training_plane(weights)"
    lines = [
        *snapshot_lines(run),
        "weights = [weights_of(opened.model) for opened in models.values()]",
        f"plane = {plane}",
        "held_out = task.held_out_batch",
        "batch = Batch(tuple(ids[:64] for ids in held_out.inputs), held_out.labels[:64])",
        "places = [-1.0, -0.5, 0.0, 0.5, 1.0]",
        "for row in losses(models[max(models)].model, batch, plane, places, places):",
        "    print(row)",
        "print(plane.path, plane.explained)",
    ]
    kind = "random_plane" if is_random else "training_plane"
    return script(
        lines,
        *SNAPSHOTS,
        f"from explorer.analysis.loss_landscape import losses, {kind}, weights_of",
        "from models.training import Batch",
    )
