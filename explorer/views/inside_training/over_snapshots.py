"""Measurements at every snapshot: heads, weights, feed-forward units, and gradient noise."""

from functools import partial
from pathlib import Path

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.dead_units import SMALL, LayerUnits, layer_units
from explorer.analysis.gradient_noise import GROUPS, NoiseScale, gradients, noise_scale
from explorer.analysis.head_metrics import METRICS, join_layers, metrics_by_layer
from explorer.analysis.head_programs import example_lines, measure_programs, read_lines
from explorer.analysis.one_update import block_of
from explorer.analysis.singular_values import SingularValues, singular_values_of
from explorer.app.choosing import choose_head
from explorer.app.controls import one_of, text_field
from explorer.app.messages import say
from explorer.app.session import session
from explorer.catalog.attention_parts import parts
from explorer.catalog.pass_budget import peak_of, reserve
from explorer.charts.figure_data import WINDOW
from explorer.charts.head_charts import program_grid
from explorer.components.chart import chart
from explorer.components.events import Place
from explorer.components.matrix import matrix
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.runs.retraining import training_at
from explorer.runs.run import Run, open_folder
from explorer.text import TextError
from explorer.text.number_format import three
from explorer.text.token_labels import VisibleText
from explorer.views.inside_training.chosen_run import (
    InsideRun,
    draw_over_steps,
    has_room,
    of_snapshots,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.tables import facts
from explorer.views.training.run_chooser import open_run_model

MOST_CURVES = 6
"""Singular values that have a curve."""
NO_UNITS = "This model has no feed-forward layers, so it has no units that could be dead."
BATCHES = 32
COPIES = BATCHES + 10
"""Copies of the weights: the model, all gradients, and their sums in double precision."""
PROGRAMS = "Strongest program"


def draw_head_scores(chosen: InsideRun) -> Script | None:
    """Draw heads down, steps across; a click on a cell shows that head at that step."""
    titles = {part.title: part.name for part in parts(chosen.first.config)}
    metrics = {metric.title: metric for metric in METRICS.values()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        title = one_of("scores_part", [*titles], [*titles][-1])
        name = one_of(
            "scores_metric", [*metrics, PROGRAMS], METRICS["largest"].title, as_list=True, width=240
        )
        if name != PROGRAMS:
            text = text_field("scores_text", chosen.task.example)
    if name == PROGRAMS:
        return _draw_programs(chosen)
    metric, part = metrics[name], titles[title]

    def measure(step: int) -> dict[str, torch.Tensor]:
        forward = run_text(chosen.opened(step), text)
        return dict(join_layers([*metrics_by_layer(forward, part)]).values)

    cost = max(1, len(text)) * chosen.parameters
    scores = of_snapshots(
        chosen, "head_scores", measure, cost=cost, doing="The heads at every step", of=(part, text)
    )
    if scores is None:
        return None
    values = torch.stack([step[metric.name].flatten() for step in scores], dim=1)
    layers, heads = scores[0][metric.name].shape
    places = ((layer, head) for layer in range(layers) for head in range(heads))
    rows = [VisibleText(f"layer {layer}, head {head}") for layer, head in places]
    matrix(
        values,
        rows,
        [f"{step:,}" for step in chosen.steps],
        key="scores_over_steps",
        title=f"{metric.title} of every head of {chosen.run.title} over its training",
        row_name="head",
        column_name="step",
        sentence="{row} at step {column}: {value}",
        unit=metric.unit,
        top=metric.top,
        exact=True,
        click="open its head",
        on_pin=partial(_open_head, chosen, part, heads),
    )
    st.caption(
        f"{metric.meaning} Measured on this sentence at every snapshot. A cell opens "
        "Attention maps with that head at that step."
    )
    return script(head_scores_code, chosen.run, text, part, metric.name)


def _open_head(chosen: InsideRun, part: str, heads: int, cell: Place | None) -> None:
    """In a callback: open Attention maps with this head at this step."""
    if cell is None:
        return
    row, column = cell
    open_run_model(chosen.run.name, chosen.steps[column])
    choose_head(*divmod(row, heads), part)
    session().next_page = "attention"


def head_scores_code(run: Run, text: str, part: str, metric: str) -> None:
    for step, folder in run.snapshots():
        forward = run_text(open_folder(folder), text)
        metrics = join_layers([*metrics_by_layer(forward, part)])
        print(step, metrics.values[metric])


def _draw_programs(chosen: InsideRun) -> Script | None:
    """Draw the strongest program of every head at every step."""
    try:
        lines = read_lines(chosen.first, example_lines(chosen.first, chosen.task))
    except (ForwardPassError, TextError) as error:
        say(str(error))
        return None
    steps = of_snapshots(
        chosen,
        "programs",
        lambda step: measure_programs(chosen.opened(step), lines),
        cost=3 * int(lines.keep.sum()) * chosen.parameters,
        doing="Programs at every step",
        of=lines.key,
    )
    if steps is None:
        return None
    rows = [
        {"head": f"layer {of.layer}, head {of.head}", "step": step} | of.row
        for step, heads in zip(chosen.steps, steps, strict=True)
        for of in heads
    ]
    title = f"Strongest program of every head of {chosen.run.title} over its training"
    chart(program_grid(rows, "head", "step"), height=WINDOW, key="programs", title=title)
    st.caption(
        f"{lines.part.words.name}, fitted at every snapshot on {lines.fitted} lines of the task. "
        f"Fainter cells overlap less on {len(lines.ids) - lines.fitted} others."
    )
    return script(programs_code, chosen.run)


def programs_code(run: Run) -> None:
    for step, folder in run.snapshots():
        opened = open_folder(folder)
        lines = read_lines(opened, example_lines(opened, run.task()))
        for head in measure_programs(opened, lines):
            print(step, head.layer, head.head, head.in_words)


def draw_singular_values(chosen: InsideRun) -> Script | None:
    """Draw the largest singular values of a matrix at every step, with its stable rank."""
    matrices = {name: p for name, p in chosen.first.model.named_parameters() if p.dim() == 2}
    usual = next((name for name in matrices if "q_proj" in name), next(iter(matrices)))
    name = one_of("spectrum_matrix", [*matrices], usual, as_list=True, width=420)
    rows, columns = matrices[name].shape

    def measure(step: int) -> SingularValues:
        return singular_values_of(chosen.opened(step).model.get_parameter(name))

    cost = rows * columns * min(rows, columns)
    spectra = of_snapshots(chosen, "spectra", measure, cost=cost, doing="Singular values", of=name)
    if spectra is None:
        return None
    ranks = range(min(MOST_CURVES, rows, columns))
    names = [f"σ{rank + 1}{'' if rank else ', the largest'}" for rank in ranks]
    curves = {
        name: [float(spectrum.values[rank]) for spectrum in spectra]
        for rank, name in zip(ranks, names, strict=True)
    }
    title = f"Singular values of {name} in {chosen.run.title}"
    draw_over_steps(chosen, curves, "singular value", title, "spectra")
    first, last = spectra[0].stable_rank, spectra[-1].stable_rank
    st.caption(
        f"The {len(ranks)} largest of {min(rows, columns):,} singular values at every snapshot. "
        f"The stable rank, Σσ² ÷ σ₁², goes from {three(first)} to {three(last)}: roughly the "
        "number of directions that the matrix uses."
    )
    return script(spectrum_code, chosen.run, name)


def spectrum_code(run: Run, name: str) -> None:
    for step, folder in run.snapshots():
        spectrum = singular_values_of(open_folder(folder).model.get_parameter(name))
        print(step, spectrum.values[:6], spectrum.stable_rank)


def draw_norms_over_steps(chosen: InsideRun) -> Script | None:
    """Draw the norm of each part's weights at every step."""
    blocks = [*dict.fromkeys(block_of(name) for name, _ in chosen.first.model.named_parameters())]

    def measure(step: int) -> Tensor:
        squares = dict.fromkeys(blocks, 0.0)
        for name, parameter in chosen.opened(step).model.named_parameters():
            squares[block_of(name)] += float(parameter.detach().double().square().sum())
        return torch.tensor([squares[block] for block in blocks], dtype=torch.double).sqrt()

    norms = of_snapshots(chosen, "norms", measure, cost=chosen.parameters, doing="Norms")
    if norms is None:
        return None
    curves = dict(zip(blocks, torch.stack(norms, dim=1).tolist(), strict=True))
    title = f"Norms of the weights of {chosen.run.title}"
    draw_over_steps(chosen, curves, "size of the weights, ‖w‖", title, "norms")
    first, last = (three(float(values.norm())) for values in (norms[0], norms[-1]))
    st.caption(
        "The Euclidean norm of the weights of each part at every snapshot. That of the whole "
        f"model goes from {first} to {last}."
    )
    return script(norms_code, chosen.run)


def norms_code(run: Run) -> None:
    for step, folder in run.snapshots():
        for name, parameter in open_folder(folder).model.named_parameters():
            print(step, name, parameter.norm().item())


def draw_dead_units(chosen: InsideRun) -> Script | None:
    """Draw the share of dead feed-forward units of every layer at every step."""
    if not chosen.first.config.d_ff:
        st.text(NO_UNITS)
        return None
    inputs = chosen.held_out.inputs

    def measure(step: int) -> list[LayerUnits]:
        return layer_units(chosen.opened(step).model, inputs)

    cost, doing = chosen.cost_of_held_out, "Activations at every step"
    steps = of_snapshots(chosen, "dead_units", measure, cost=cost, doing=doing)
    if steps is None:
        return None
    curves = {
        f"{layers[0].stack} layer {layers[0].layer}": [layer.share for layer in layers]
        for layers in zip(*steps, strict=True)
    }
    title = f"Dead feed-forward units of {chosen.run.title}"
    draw_over_steps(chosen, curves, "share of units", title, "dead_units")
    units = sum(len(layer.largest) for layer in steps[-1])
    dead = sum(int(layer.dead.sum()) for layer in steps[-1])
    how = "is never above zero" if steps[-1][0].is_exact else (
        f"is never above {SMALL:.0%} of the largest one of its layer, in absolute value"
    )  # fmt: skip
    st.caption(
        f"At the last snapshot, step {chosen.steps[-1]:,}, {dead:,} of {units:,} units are dead: "
        f"their activation {how} on any token of {chosen.held_out_words}."
    )
    return script(units_code, chosen.run)


def units_code(run: Run) -> None:
    inputs = tuple(ids[:64] for ids in run.task().held_out_batch.inputs)
    for step, folder in run.snapshots():
        for units in layer_units(open_folder(folder).model, inputs):
            print(step, units.stack, units.layer, units.share)


def draw_gradient_noise(chosen: InsideRun) -> Script | None:
    """Draw the gradient noise scale at every step with the batch size of the run."""
    training = chosen.spec.training
    peak = peak_of(chosen.first.config, chosen.task.batch(0, training).inputs)
    needed = COPIES * chosen.first.bytes + peak
    if not has_room(needed):
        return None

    def measure(step: int) -> NoiseScale:
        model, now = chosen.opened(step).model, chosen.training(step)
        with reserve(needed):
            batches = gradients(
                model, lambda at: chosen.task.batch(step + at, now), BATCHES, now.label_smoothing
            )
            return noise_scale([*batches], training.batch_size)

    scales = of_snapshots(
        chosen,
        "noise_scale",
        measure,
        cost=BATCHES * chosen.cost_of_step,
        doing="Gradients at every step",
        of=tuple(map(chosen.training, chosen.steps)),
    )
    if scales is None:
        return None
    curves = {
        "noise scale": [scale.scale for scale in scales],
        "batch size of the run": [float(training.batch_size)] * len(scales),
    }
    title = f"Gradient noise scale of {chosen.run.title}"
    draw_over_steps(chosen, curves, "examples", title, "noise_scale")
    last = scales[-1]
    low, high = _examples(last.low), _examples(last.high)
    with widgets.side_by_side(1, 1)[0]:
        facts(
            [
                ("noise scale after the last step", _examples(last.scale)),
                (f"range over {GROUPS} groups of batches", f"{low} to {high}"),
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


def noise_code(run: Run, batches: int) -> None:
    task = run.task()

    def scale(step: int, folder: Path) -> NoiseScale:
        model, training = open_folder(folder).model, training_at(run, run.spec, step)
        smoothing = training.label_smoothing
        batch_gradients = gradients(
            model, lambda at: task.batch(step + at, training), batches, smoothing
        )
        return noise_scale([*batch_gradients], training.batch_size)

    for step, folder in run.snapshots():
        print(step, scale(step, folder))
