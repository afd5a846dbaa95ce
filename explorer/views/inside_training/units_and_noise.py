"""Two numbers of a training that tell what to change: dead units, and the gradient noise scale."""

from pathlib import Path

import streamlit as st

from explorer.analysis.dead_units import SMALL, LayerUnits, layer_units
from explorer.analysis.gradient_noise import GROUPS, NoiseScale, gradients, noise_scale
from explorer.catalog.pass_budget import peak_of, reserved
from explorer.charts.training_curves import lines_over_steps
from explorer.components.chart import chart
from explorer.runs.retraining import training_at
from explorer.runs.run import Run, open_folder
from explorer.text.number_format import three
from explorer.views.inside_training.chosen_run import InsideRun
from explorer.views.inside_training.measuring import (
    batch_tokens,
    batch_words,
    has_room,
    measured_batch,
    of_snapshots,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.tables import facts

HEIGHT = 340
BATCHES = 32
NO_UNITS = "This model has no feed-forward layers, so it has no units that could be dead."
COPIES = BATCHES + 10
"""Of the weights: the model, all gradients, and their sums in double precision."""


def draw_dead_units(chosen: InsideRun) -> Script | None:
    """The share of feed-forward units that nothing makes active, layer by layer, step by step."""
    if not chosen.first.config.d_ff:
        st.text(NO_UNITS)
        return None
    inputs = measured_batch(chosen).inputs

    def measure(step: int) -> list[LayerUnits]:
        return layer_units(chosen.opened(step).model, inputs)

    found = of_snapshots(
        chosen,
        "dead_units",
        "",
        measure,
        lambda made: sum(each.largest.nbytes for each in made),
        batch_tokens(chosen) * chosen.parameters,
        "Activations at every step",
    )
    if found is None:
        return None
    lines = [
        (step, f"{layer.stack} layer {layer.layer}", layer.share)
        for at in range(len(found[0]))
        for step, layers in zip(chosen.steps, found, strict=True)
        for layer in (layers[at],)
    ]
    title = f"Dead feed-forward units of {chosen.run.title}"
    chart(lines_over_steps(lines, "share of units"), height=HEIGHT, key="dead_units", title=title)
    units = sum(len(layer.largest) for layer in found[-1])
    dead = sum(int(layer.dead.sum()) for layer in found[-1])
    how = "is never above zero" if found[-1][0].is_exact else (
        f"is never above {SMALL:.0%} of the largest one of its layer, in absolute value"
    )  # fmt: skip
    st.caption(
        f"After the last step, {dead:,} of {units:,} units are dead: their activation {how} on any "
        f"token of {batch_words(chosen)}."
    )
    return script(units_code, chosen.run)


def draw_gradient_noise(chosen: InsideRun) -> Script | None:
    """The gradient noise scale at every step, beside the batch size of the run."""
    training = chosen.spec.training
    peak = peak_of(chosen.first.config, chosen.task.batch(0, training).inputs)
    needed = COPIES * chosen.first.bytes + peak
    if not has_room(needed):
        return None

    def measure(step: int) -> NoiseScale:
        model, now = chosen.opened(step).model, chosen.training(step)
        with reserved(needed):
            found = gradients(
                model,
                lambda at: chosen.task.batch(step + at, now),
                BATCHES,
                now.label_smoothing,
            )
            return noise_scale([*found], training.batch_size)

    found = of_snapshots(
        chosen,
        "noise_scale",
        tuple(map(chosen.training, chosen.steps)),
        measure,
        lambda made: 100,
        BATCHES * chosen.cost_of_step,
        "Gradients at every step",
    )
    if found is None:
        return None
    lines = [
        (step, name, value)
        for name, values in (
            ("noise scale", [each.scale for each in found]),
            ("batch size of the run", [float(training.batch_size)] * len(found)),
        )
        for step, value in zip(chosen.steps, values, strict=True)
    ]
    title = f"Gradient noise scale of {chosen.run.title}"
    chart(lines_over_steps(lines, "examples"), height=HEIGHT, key="noise_scale", title=title)
    last = found[-1]
    with widgets.side_by_side(1, 1)[0]:
        facts(
            [
                ("noise scale after the last step", _examples(last.scale)),
                (
                    f"range over {GROUPS} groups of batches",
                    f"{_examples(last.low)} to {_examples(last.high)}",
                ),
                ("‖G‖²", three(last.squared_gradient)),
                ("trace of the covariance", three(last.trace)),
            ]
        )
    st.caption(
        "The variance of one example's gradient, summed over all weights, divided by ‖G‖², the "
        f"squared norm of the mean gradient. Both are estimated from {BATCHES} batches of "
        f"{training.batch_size} examples at each snapshot, without dropout. Batches much larger "
        "than the noise scale gain little. Where the estimate of ‖G‖² is not above zero, there is "
        "no noise scale."
    )
    return script(noise_code, chosen.run, BATCHES)


def _examples(value: float) -> str:
    return "none" if value != value else three(value)


def units_code(run: Run) -> None:
    inputs = tuple(ids[:64] for ids in run.task().held_out_batch.inputs)
    for step, folder in run.snapshots():
        for each in layer_units(open_folder(folder).model, inputs):
            print(step, each.stack, each.layer, each.share)


def noise_code(run: Run, batches: int) -> None:
    task = run.task()

    def scale(step: int, folder: Path) -> NoiseScale:
        model, training = open_folder(folder).model, training_at(run, run.spec, step)
        smoothing = training.label_smoothing
        found = gradients(model, lambda at: task.batch(step + at, training), batches, smoothing)
        return noise_scale([*found], training.batch_size)

    for step, folder in run.snapshots():
        print(step, scale(step, folder))
