"""One update of the weights, a stage at a time: from the batch to the loss after the update."""

import math
from dataclasses import dataclass
from functools import partial

import streamlit as st
import torch
from torch import Tensor
from torch.nn.functional import pad

from explorer.analysis.batched_passes import MOST, QUICK
from explorer.analysis.one_update import GOOD_RATIO, OneUpdate, by_block, take_apart
from explorer.analysis.weight_statistics import pooled
from explorer.app.controls import number, one_of
from explorer.app.messages import say
from explorer.app.progress import bar
from explorer.catalog import in_a_sentence
from explorer.catalog.pass_budget import MEMORY
from explorer.charts.bars import block_bars, block_points
from explorer.charts.figure_data import WINDOW
from explorer.charts.vega_lite import Spec
from explorer.components.chart import chart
from explorer.components.matrix import matrix
from explorer.inference.results_cache import cached, if_cached
from explorer.runs.retraining import (
    ModelInTraining,
    at_saved_step,
    at_step_0,
    from_snapshot,
    largest_difference,
    saved_step,
    train_on,
    training_at,
)
from explorer.runs.run import Run
from explorer.tasks.data_summary import examples_of
from explorer.text.number_format import three
from explorer.views.inside_training.chosen_run import InsideRun, has_room
from explorer.views.shared import widgets
from explorer.views.shared.batch_example import BATCH_EXPLAINED, draw_example
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.measurement import is_started, stop
from explorer.views.shared.step_slider import stepper
from explorer.views.shared.tables import facts
from explorer.views.shared.widgets import ViewSpec
from explorer.views.training.run_words import hides_text
from models.loading.safe_files import CheckpointError
from models.losses import IGNORE, has_large_logits

COPIES_OF_UPDATE = 8
"""Copies of the weights: model, gradients, Adam's two, before, after, and two more."""
SAVED = (
    "Weights and optimizer state are those that the run has saved: resumed, it would make this "
    "update next."
)
RETRAINED_EXACTLY = (
    "A run keeps the optimizer state of its newest step only, so it was trained again from step 0 "
    "to here. The weights equal those of the snapshot bit for bit."
)
RETRAINED_NEARLY = (
    "A run keeps the optimizer state of its newest step only, so it was trained again from step 0 "
    "to here. This machine rounds differently: the weights differ from those of the snapshot by "
    "up to {most}, and the update may differ a little from the run's."
)
GRADIENT_ONLY = (
    "The update needs the optimizer state, which the run has saved for {step} only. Training "
    "again from step 0 to here would take too long, so the gradient is shown without the update."
)
TOO_MANY_LOGITS = (
    "A batch of this run has too many logits to keep the loss of every token: choose a run with a "
    "smaller batch or vocabulary."
)
QUICK_STEPS = 10
"""A step of the smallest model takes milliseconds: so many are less than a second."""


@dataclass(frozen=True, eq=False)
class RunUpdate:
    """An update, and a note on the state that it starts from; without one, only the gradient."""

    update: OneUpdate
    note: str
    has_state: bool = True


def _update_after(chosen: InsideRun, step: int) -> RunUpdate | None:
    """The update after this step, cached; None, and a sentence, if it is not computed."""
    snapshot = chosen.identity(step) if step in chosen.snapshots else None
    key = ("one update", step, snapshot, saved_step(chosen.run))  # the note is on the saved state
    update: RunUpdate | None = if_cached(chosen.first, key)
    if update is not None:
        return update
    training = chosen.training(step)
    batch = chosen.task.batch(step, training)
    if not training.label_smoothing and has_large_logits(chosen.first.model, batch.labels):
        st.text(TOO_MANY_LOGITS)
        return None
    needed = COPIES_OF_UPDATE * chosen.first.bytes
    if not has_room(needed):
        return None
    with MEMORY.spend(needed, remains=0):
        try:
            start = _start_of_update(chosen, step)
        except (CheckpointError, OSError) as error:  # damaged, or deleted meanwhile
            why = in_a_sentence(error)
            say(f"The saved state of this step cannot be read: {why} Choose another step or run.")
            return None
        if start is None:
            return None
        trained, note, has_state = start

        def make() -> RunUpdate:
            update = take_apart(
                trained.model, lambda at: chosen.task.batch(at, training), training, trained.state
            )
            return RunUpdate(update, note, has_state)

        return cached(chosen.first, key, make)


def _start_of_update(chosen: InsideRun, step: int) -> tuple[ModelInTraining, str, bool] | None:
    """The training before this update, a note on it, and whether it has the optimizer's state."""
    if step == saved_step(chosen.run) and (trained := at_saved_step(chosen.run, chosen.spec)):
        return trained, SAVED, True
    if (folder := chosen.snapshots.get(step)) is None:
        raise CheckpointError("A newer one has replaced it.")
    if chosen.cost_of_step * step > MOST:
        newest = saved_step(chosen.run)
        note = GRADIENT_ONLY.format(step="no step" if newest is None else f"step {newest:,}")
        return from_snapshot(folder, step, chosen.spec), note, False
    trained = _retrain(chosen, step)
    if trained is None:
        return None
    most = largest_difference(trained.model, folder)
    note = RETRAINED_NEARLY.format(most=three(most)) if most else RETRAINED_EXACTLY
    return trained.copy(), note, True


def _retrain(chosen: InsideRun, step: int) -> ModelInTraining | None:
    """Train the run to this step, from the last cached one; None until the reader starts it."""
    marks = [mark for mark in chosen.steps if mark <= step]
    keys = {mark: ("trained", chosen.identity(mark)) for mark in marks}
    models = [if_cached(chosen.first, keys[mark]) for mark in reversed(marks)]
    latest: ModelInTraining = next(filter(None, models), None) or at_step_0(chosen.run, chosen.spec)
    done = latest.state.step
    cost = chosen.cost_of_step * (step - done)
    if not is_started("one_update", (chosen.run.name, step), cost, "Training again:"):
        return None
    with bar("Training again", partial(stop, "one_update")) as report:
        for mark in marks:
            if mark < done:
                continue

            def make(start: ModelInTraining = latest, mark: int = mark) -> ModelInTraining:
                trained = start.copy()
                for at in train_on(trained, chosen.run, chosen.task, chosen.spec, mark):
                    report(at / max(1, step))
                return trained

            latest = cached(chosen.first, keys[mark], make)
    return latest


IN_A_ROW = 8
MOST_LOSSES = 64
"""The first examples and positions, which the picture of losses has."""
ALREADY_TRAINED = "This run has no step before its last, so there is no update to take apart."
HIDDEN_BATCHES = (
    "This run is trained on the text of another reader, so its batches are not shown. The other "
    "stages are."
)


def draw_batch(chosen: InsideRun, run_update: RunUpdate) -> None:
    """Draw one example of the batch, with the label under each token."""
    if hides_text(chosen.run):
        st.text(HIDDEN_BATCHES)
        return
    _draw_example(chosen, run_update)
    labels = run_update.update.batch.labels
    count, n_labels = len(labels), int((labels != IGNORE).sum())
    explained = "" if labels.dim() == 1 else f" {BATCH_EXPLAINED}"
    st.caption(
        f"This batch has {count:,} examples and {n_labels:,} labels.{explained} Held-out data "
        f"({chosen.task.held_out}) is never in a batch."
    )


def draw_losses(chosen: InsideRun, run_update: RunUpdate) -> None:
    """Draw the loss of one example's labels on its tokens, and of every label of the batch."""
    update = run_update.update
    has_label = (update.batch.labels != IGNORE).cpu()
    losses = update.losses.view(len(update.losses), -1)[:MOST_LOSSES, :MOST_LOSSES]
    allowed = has_label.view(len(has_label), -1)[:MOST_LOSSES, :MOST_LOSSES]
    rows, columns = losses.shape
    is_folded = columns == 1  # one label for each example, as a classifier has
    across = IN_A_ROW if is_folded else columns
    losses, allowed = (
        pad(values.flatten(), (0, -values.numel() % across)).view(-1, across)
        for values in (losses.where(allowed, 0.0), allowed)
    )
    place = "{row} {column}" if is_folded else "{row}, position {column}"
    left, right = widgets.side_by_side(1, 1)
    with left:
        if hides_text(chosen.run):
            st.text(HIDDEN_BATCHES)
        else:
            _draw_example(chosen, run_update, with_losses=True)
    with right:
        matrix(
            losses,
            [str(row * across if is_folded else row) for row in range(len(losses))],
            [f"+{column}" if is_folded else str(column) for column in range(across)],
            key="batch_losses",
            title=f"Loss of every label, update {update.step + 1:,}",
            allowed=allowed,
            row_name="example",
            column_name="in the row" if is_folded else "position",
            sentence=f"Example {place}: {{value}} nats",
            masked_sentence="There is no example here."
            if is_folded
            else f"There is no label for example {place}.",
            absent="no label",
            unit="nats",
        )
    label_losses = update.losses[has_label]
    is_cut = rows * columns < update.losses.numel()
    cut = f" The picture has the first {rows} examples and {columns} positions." if is_cut else ""
    words = losses_in_words(label_losses)
    smoothing = chosen.training(update.step).label_smoothing
    smoothed = f" Label smoothing of {three(smoothing)} is included." if smoothing else ""
    left.caption(f"−ln of the probability of each label; {words}{smoothed}{cut}")


def losses_in_words(losses: Tensor) -> str:
    """The mean and the largest of the losses of all labels, (labels,)."""
    count = int((~losses.isfinite()).sum())
    if count:
        verb = "is" if count == 1 else "are"
        return f"{count:,} of {len(losses):,} {verb} not finite, so the batch has no finite loss."
    mean, most = (three(float(value)) for value in (losses.mean(), losses.max()))
    if len(losses) == 1:
        return f"the only one, {mean} nats, is the loss of the batch."
    equal = int((losses == losses.max()).sum())
    largest = f"The largest is {most} nats"
    if equal == len(losses):
        largest = "All are equal"
    elif equal > 1:
        largest += f", of {equal:,} labels"
    return f"their mean, {mean} nats, is the loss of the batch. {largest}."


def _draw_example(chosen: InsideRun, run_update: RunUpdate, *, with_losses: bool = False) -> None:
    """Draw one example as the Training page does, with the loss of each label on request."""
    batch = run_update.update.batch
    at = number("update_example", len(batch.labels) - 1, width=420)
    row = batch.rows(slice(at, at + 1))
    (example,) = examples_of(chosen.task, row, 1)
    losses = torch.atleast_1d(run_update.update.losses[at]).tolist() if with_losses else None
    draw_example(example, f"example {at}", "update_reads", losses)


def draw_one_update(chosen: InsideRun) -> Script | None:
    """Draw one stage of the update after the chosen step."""
    last, saved = chosen.spec.training.steps, saved_step(chosen.run) or 0
    steps = sorted(step for step in {*chosen.steps, saved} if step < last)
    if not steps:
        st.text(ALREADY_TRAINED)
        return None
    left, right = widgets.side_by_side(1, 1)
    with left:
        names = [f"{step + 1:,} of {last:,}" for step in steps]
        usual = len(steps) - 1
        if saved_step(chosen.run) != steps[-1]:  # the last step that is quick to train to
            most = min(QUICK_STEPS, QUICK // chosen.cost_of_step)
            usual = max((at for at, step in enumerate(steps) if step <= most), default=0)
        st.markdown("**Update**")
        at = stepper("update_after", len(steps), usual, names=names)
    with right:
        st.markdown("**Stage of this update**")
        stage = stepper("update_stage", len(STAGES), GRADIENT, names=list(STAGES), arrows=True)
    step = steps[at]
    run_update = _update_after(chosen, step)
    if run_update is None:
        return None
    view = [*STAGES.values()][stage]
    st.text(f"Update {step + 1:,} of {last:,}. {view.sentence}")
    view.draw(chosen, run_update)
    st.caption(run_update.note)
    return script(update_code, chosen.run, step, run_update.note == SAVED)


def _draw_gradient(chosen: InsideRun, run_update: RunUpdate) -> None:
    update = run_update.update
    blocks = by_block(update.parameters())
    names, values = [block.name for block in blocks], [block.gradient_norm for block in blocks]
    _draw_parts(
        f"Gradient norm of every part, update {update.step + 1:,}",
        block_bars(names, values, "gradient norm"),
        [
            ("gradient norm, all parts", three(update.report.grad_norm)),
            ("clipped to at most", three(update.clip) if update.clip else "not clipped"),
            ("so all are multiplied by", three(update.scale)),
        ],
        "‖∂loss/∂w‖ over all weights of a part, before clipping. Where the norm over all parts is "
        "above the clipping threshold, every gradient is multiplied by the same factor.",
        key="gradient_norms",
    )


def _draw_update(chosen: InsideRun, run_update: RunUpdate) -> None:
    update = run_update.update
    if not run_update.has_state:
        return
    blocks = by_block(update.parameters())
    names, values = [block.name for block in blocks], [block.ratio for block in blocks]
    _draw_parts(
        f"Update over weights of every part, update {update.step + 1:,}",
        block_points(names, values, "‖update‖ ÷ ‖weights‖", GOOD_RATIO),
        [("optimizer", chosen.spec.training.optimizer), ("learning rate", three(update.report.lr))],
        "The norm of the update of a part, divided by the norm of its weights. A rule of thumb is "
        f"about {GOOD_RATIO:g}, the dashed line: far above it training becomes unstable, far below "
        "it is slow. Weights that are still zero, such as biases at first, have no ratio.",
        key="update_ratios",
    )


def _draw_parts(
    title: str, spec: Spec, numbers: list[tuple[str, str]], words: str, key: str
) -> None:
    """Draw a number of every part as a chart, and some numbers of the whole update."""
    chart_column, facts_column = widgets.side_by_side(7, 3)
    with chart_column:
        chart(spec, height=WINDOW, key=key, title=title)
    with facts_column:
        facts(numbers)
    st.caption(words)


def _draw_matrix(chosen: InsideRun, run_update: RunUpdate) -> None:
    update = run_update.update
    matrices = [name for name, weights in update.before.items() if weights.dim() > 1]
    usual = next((name for name in matrices if "q_proj" in name), matrices[0])
    name = one_of("update_matrix", matrices, usual, as_list=True, width=420)
    pictures = [("Gradient", update.gradients[name])]
    if run_update.has_state:
        pictures.append(("Update", update.after[name] - update.before[name]))
    for place, (what, values) in zip(widgets.side_by_side(1, 1), pictures, strict=False):
        picture = pooled(values)
        with place:
            matrix(
                picture.values,
                picture.rows,
                picture.columns,
                key=f"update_{what.lower()}",
                title=f"{what} of {name}, update {update.step + 1:,}",
                scale="diverging",
                row_name="row",
                column_name="column",
                sentence="Row {row}, column {column}: {value}",
                unit=what.lower(),
            )
    words = f"{pooled(update.gradients[name]).sentence} Blue is above zero, red below."
    if run_update.has_state:
        words += f" {moves_in_words(update.against_gradient(name))}"
    st.caption(words)


def moves_in_words(share: float) -> str:
    """The share of the weights that move against the gradient; NaN if none has one and moves."""
    if math.isnan(share):
        return "No weight both has a gradient and moves."
    others = " The others follow the earlier batches that the optimizer remembers, or weight decay."
    return (
        f"{three(100 * share)} % of the weights that have a gradient and move, move against it."
        f"{others if share < 1 else ''}"
    )


def _draw_after(chosen: InsideRun, run_update: RunUpdate) -> None:
    update = run_update.update
    if not run_update.has_state:
        return
    before, after = update.report.loss, update.loss_after
    with widgets.side_by_side(2, 3)[0]:
        facts(
            [
                ("loss before", f"{three(before)} nats"),
                ("loss after", f"{three(after)} nats"),
                ("change", f"{three(after - before)} nats"),
                ("first-order estimate of it", f"{three(update.linear_change)} nats"),
            ]
        )
    st.caption(
        "The loss of the same batch with the same dropout, before and after the update. The "
        "first-order estimate of the change is gradient × update, summed over all weights."
    )


STAGES = {
    "Batch": ViewSpec("The examples that it reads, and what it must answer.", draw_batch),
    "Loss per token": ViewSpec("The stronger a cell, the larger the loss there.", draw_losses),
    "Gradient": ViewSpec(
        "A longer bar: the loss reacts more to changes in this part of the model.", _draw_gradient
    ),
    "Update": ViewSpec(
        "Further right: this part of the model changes more in this step.", _draw_update
    ),
    "One matrix": ViewSpec(
        "Each cell is a weight: how the loss reacts to it, and how it is changed.", _draw_matrix
    ),
    "Loss after": ViewSpec("The error on the same examples, before and after it.", _draw_after),
}
GRADIENT = [*STAGES].index("Gradient")


def update_code(run: Run, step: int, is_saved: bool) -> None:
    torch.set_num_threads(1)  # like the worker: sums in another order are rounded differently
    task, training = run.task(), training_at(run, run.spec, step)
    trained = at_saved_step(run, run.spec) if is_saved else None
    trained = trained or at_step_0(run, run.spec)
    for _ in train_on(trained, run, task, run.spec, step):
        pass
    update = take_apart(trained.model, lambda at: task.batch(at, training), training, trained.state)
    print(update.report, update.loss_after)
    for block in by_block(update.parameters()):
        print(block.name, block.gradient_norm, block.ratio)
