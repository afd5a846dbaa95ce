"""One update in slow motion: from the batch to the loss after it, a stage at a time."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st
import torch

from explorer.analysis.batched_passes import MOST, QUICK
from explorer.analysis.one_update import GOOD_RATIO, OneUpdate, by_block, take_apart
from explorer.analysis.weight_statistics import pooled
from explorer.app.controls import number, one_of
from explorer.app.messages import say
from explorer.app.progress import bar
from explorer.catalog.pass_budget import MEMORY
from explorer.charts.bars import block_bars, block_points, height_of
from explorer.charts.vega_lite import Spec
from explorer.components import matrix
from explorer.components.chart import chart
from explorer.inference.results_cache import if_kept, kept
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
from explorer.views.shared.measurement import is_started, stoppable
from explorer.views.shared.step_slider import stepper
from explorer.views.shared.tables import facts
from models.losses import IGNORE, has_large_logits
from models.training import Batch

COPIES_OF_UPDATE = 8
"""Of the weights: the model, its gradients, Adam's two, those before and after, and two more."""
SAVED = (
    "Weights and optimizer state are those that the run has saved: resumed, it would make this "
    "update next."
)
EXACTLY_TRAINED = (
    "A run keeps the optimizer state of its newest step only, so it was trained again from step 0 "
    "to here. The weights equal those of the snapshot bit for bit."
)
ANOTHER = (
    "A run keeps the optimizer state of its newest step only, so it was trained again from step 0 "
    "to here. This machine rounds differently: the weights differ from those of the snapshot by "
    "up to {most}, and the update may differ a little from the run's."
)
GRADIENT_ONLY = (
    "The update needs the optimizer state, which the run has saved for {kept} only. Training "
    "again from step 0 to here would take too long, so the gradient is shown without the update."
)

TOO_MANY_LOGITS = (
    "A batch of this run has too many logits to keep the loss of every token: choose a run with a "
    "smaller batch or vocabulary."
)


@dataclass(frozen=True, eq=False)
class RunUpdate:
    """`note` says which state it begins with; without one only the gradient is the run's."""

    update: OneUpdate
    note: str
    has_state: bool = True

    @property
    def is_saved(self) -> bool:
        """Whether it begins with the state in the run's folder."""
        return self.note == SAVED


def steps_offered(chosen: InsideRun) -> list[int]:
    """The steps after which an update follows: those of the snapshots, and that of the state."""
    known = {*chosen.steps, saved_step(chosen.run) or 0}
    return sorted(step for step in known if step < chosen.spec.training.steps)


def first_step(chosen: InsideRun, offered: list[int]) -> int:
    """The place of the one that is shown first: the state of a run, or the last that is quick."""
    if saved_step(chosen.run) == offered[-1]:
        return len(offered) - 1
    quick = [at for at, step in enumerate(offered) if _cost(chosen, step) <= QUICK]
    return max(quick, default=0)


def update_after(chosen: InsideRun, step: int) -> RunUpdate | None:
    """The update after this step, kept; None where it is not computed, and the page says why."""
    snapshot = chosen.identity(step) if step in chosen.snapshots else None
    key = ("one update", step, snapshot, saved_step(chosen.run))  # the note is about that state
    known: RunUpdate | None = if_kept(chosen.first, key)
    if known is not None:
        return known
    training = chosen.training(step)
    batch = chosen.task.batch(step, training)
    if not training.label_smoothing and has_large_logits(chosen.first.model, batch.labels):
        st.text(TOO_MANY_LOGITS)
        return None
    needed = COPIES_OF_UPDATE * chosen.first.bytes
    if not has_room(needed):
        return None
    with MEMORY.spend(needed, kept=0):
        beginning = _beginning(chosen, step)
        if beginning is None:
            return None
        began, note, has_state = beginning

        def make() -> RunUpdate:
            update = take_apart(
                began.model, lambda at: chosen.task.batch(at, training), training, began.state
            )
            return RunUpdate(update, note, has_state)

        return kept(chosen.first, key, make)


def _beginning(chosen: InsideRun, step: int) -> tuple[ModelInTraining, str, bool] | None:
    """The training before this update, and what is said of it."""
    if step == saved_step(chosen.run) and (began := at_saved_step(chosen.run, chosen.spec)):
        return began, SAVED, True
    if step not in chosen.snapshots:
        say("The saved state of this step was replaced by a newer one: choose another step.")
        return None
    folder = chosen.snapshots[step]
    if _cost(chosen, step) > MOST:
        newest = saved_step(chosen.run)
        kept_of = "no step" if newest is None else f"step {newest:,}"
        note = GRADIENT_ONLY.format(kept=kept_of)
        return from_snapshot(folder, step, chosen.spec), note, False
    trained = _trained_again(chosen, step)
    if trained is None:
        return None
    most = largest_difference(trained.model, folder)
    return trained.copy(), EXACTLY_TRAINED if most == 0 else ANOTHER.format(most=three(most)), True


def _trained_again(chosen: InsideRun, step: int) -> ModelInTraining | None:
    """The run trained to this step, from the last snapshot that was reached before."""
    marks = [mark for mark in chosen.steps if mark <= step]
    keys = {mark: ("trained", chosen.identity(mark)) for mark in marks}
    known = [if_kept(chosen.first, keys[mark]) for mark in reversed(marks)]
    began: ModelInTraining = next(filter(None, known), None) or at_step_0(chosen.run, chosen.spec)
    done = began.state.step
    cost = chosen.cost_of_step * (step - done)
    if not is_started("one_update", (chosen.run.name, step), cost, "Training again:"):
        return None
    with stoppable("one_update", cost), bar("Training again") as report:
        for mark in marks:
            if mark < done:
                continue

            def make(began: ModelInTraining = began, mark: int = mark) -> ModelInTraining:
                trained = began.copy()
                for at in train_on(trained, chosen.run, chosen.task, chosen.spec, mark):
                    report(at / max(1, step))
                return trained

            began = kept(chosen.first, keys[mark], make)
    return began


def _cost(chosen: InsideRun, step: int) -> int:
    return chosen.cost_of_step * step


DRAWN, LOSSES_HEIGHT = 64, 480
"""Examples and positions of the picture of losses, of more the first; pixels of it."""
PICTURE_HEIGHT = 420
ALREADY_TRAINED = "This run has no step before its last, so there is no update to take apart."
HIDDEN_BATCHES = (
    "This run learns from the text of another reader, so its batches are not shown. The other "
    "stages are."
)


def draw_batch(chosen: InsideRun, run_update: RunUpdate) -> None:
    """One example of the batch, token by token, with what is to be predicted under each."""
    if chosen.hides_text:
        st.text(HIDDEN_BATCHES)
        return
    _draw_example(chosen, run_update)
    count, labels = len(run_update.update.batch.labels), run_update.update.batch.labels
    known = int((labels != IGNORE).sum())
    explained = "" if labels.dim() == 1 else f" {BATCH_EXPLAINED}"
    st.caption(
        f"This batch has {count:,} examples and {known:,} labels.{explained} What is held out "
        f"({chosen.task.held_out}) is never in a batch."
    )


def draw_losses(chosen: InsideRun, run_update: RunUpdate) -> None:
    """The loss of every label of the batch, and of one example on its tokens."""
    update = run_update.update
    has_label = (update.batch.labels != IGNORE).cpu()
    losses = update.losses.view(len(update.losses), -1)[:DRAWN, :DRAWN]
    drawn = has_label.view(len(has_label), -1)[:DRAWN, :DRAWN]
    rows, columns = losses.shape
    left, right = widgets.side_by_side(1, 1)
    with left:
        if chosen.hides_text:
            st.text(HIDDEN_BATCHES)
        else:
            _draw_example(chosen, run_update, with_losses=True)
    with right:
        matrix(
            losses.where(drawn, 0.0),
            [str(row) for row in range(rows)],
            [str(column) for column in range(columns)],
            key="batch_losses",
            title=f"Loss of every label, update {update.step + 1:,}",
            allowed=drawn,
            row_name="example",
            column_name="position",
            sentence="Example {row}, position {column}: {value} nats",
            masked_sentence="Example {row} has no label at position {column}.",
            absent="no label",
            unit="nats",
            height=LOSSES_HEIGHT,
        )
    known = update.losses[has_label]
    is_cut = losses.numel() < update.losses.numel()
    cut = f" The picture has the first {rows} examples and {columns} positions." if is_cut else ""
    if known.isfinite().all():
        mean, most = three(float(known.mean())), three(float(known.max()))
        words = f"their mean, {mean} nats, is the loss of the batch. The largest is {most} nats."
    else:
        count = int((~known.isfinite()).sum())
        words = f"{count:,} of {len(known):,} are not finite, since the training has diverged."
    smoothing = chosen.training(update.step).label_smoothing
    smoothed = f" Label smoothing of {three(smoothing)} is included." if smoothing else ""
    st.caption(f"−ln of the probability of each label; {words}{smoothed}{cut}")


def _draw_example(chosen: InsideRun, run_update: RunUpdate, *, with_losses: bool = False) -> None:
    """As it is drawn before a training, with the loss of each label where they are asked for."""
    batch = run_update.update.batch
    at = number("update_example", len(batch.labels) - 1, width=420)
    row = Batch(tuple(ids[at : at + 1] for ids in batch.inputs), batch.labels[at : at + 1])
    (example,) = examples_of(chosen.task, row, 1)
    losses = torch.atleast_1d(run_update.update.losses[at]).tolist() if with_losses else None
    draw_example(example, f"example {at}", "update_reads", losses)


def draw_one_update(chosen: InsideRun) -> Script | None:
    """The update after the chosen step, and one of its stages."""
    offered = steps_offered(chosen)
    if not offered:
        st.text(ALREADY_TRAINED)
        return None
    left, right = widgets.side_by_side(1, 1)
    with left:
        names = [f"after step {step:,}" for step in offered]
        usual = first_step(chosen, offered)
        at = stepper("update_after", len(offered), usual, names=names)
    with right:
        stage = stepper("update_stage", len(STAGES), 0, names=list(STAGES), arrows=True)
    step = offered[at]
    run_update = update_after(chosen, step)
    if run_update is None:
        return None
    name = list(STAGES)[stage]
    st.markdown(f"**Update {step + 1:,} of {chosen.spec.training.steps:,} · {name}**")
    STAGES[name](chosen, run_update)
    st.caption(run_update.note)
    return script(update_code, chosen.run, step, run_update.is_saved)


def _draw_gradient(chosen: InsideRun, run_update: RunUpdate) -> None:
    update = run_update.update
    blocks = by_block(update.parameters())
    names, values = [block.name for block in blocks], [block.gradient_norm for block in blocks]
    _draw_parts(
        f"Gradient norm of every part, update {update.step + 1:,}",
        block_bars(names, values, "gradient norm"),
        names,
        [
            ("gradient norm", three(update.report.grad_norm)),
            ("clipped to", three(update.clip) if update.clip else "not clipped"),
            ("multiplied by", three(update.scale)),
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
        names,
        [
            ("optimizer", chosen.spec.training.optimizer),
            ("learning rate", three(update.report.lr)),
        ],
        "The norm of the update of a part, divided by the norm of its weights. A rule of thumb is "
        f"about {GOOD_RATIO:g}, the dashed line: far above it training becomes unstable, far below "
        "it is slow. Weights that are still zero, such as biases at first, have no ratio.",
        key="update_ratios",
    )


def _draw_parts(
    title: str, spec: Spec, names: list[str], numbers: list[tuple[str, str]], words: str, key: str
) -> None:
    """A number of every part as a chart, beside it some of the whole update."""
    drawn, beside = widgets.side_by_side(7, 3)
    with drawn:
        chart(spec, height=height_of(names), key=key, title=title)
    with beside:
        facts(numbers)
    st.caption(words)


def _draw_matrix(chosen: InsideRun, run_update: RunUpdate) -> None:
    update = run_update.update
    matrices = [name for name, each in update.before.items() if each.dim() > 1]
    usual = next((name for name in matrices if "q_proj" in name), matrices[0])
    name = one_of("update_matrix", matrices, usual, as_list=True, width=420)
    moved = update.after[name] - update.before[name]
    pictures = [("Gradient", update.gradients[name])] + [("Update", moved)] * run_update.has_state
    for place, (what, values) in zip(widgets.side_by_side(1, 1), pictures, strict=False):
        picture = pooled(values)
        with place:
            st.markdown(f"**{what}**")
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
                height=PICTURE_HEIGHT,
            )
    words = f"{pooled(update.gradients[name]).sentence} Blue is above zero, red below."
    if run_update.has_state:
        words += (
            f" {three(100 * update.against_gradient(name))} % of the weights move against this "
            "batch's gradient. The others follow the earlier batches that the optimizer remembers, "
            "or weight decay."
        )
    st.caption(words)


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


STAGES: dict[str, Callable[[InsideRun, RunUpdate], None]] = {
    "Batch": draw_batch,
    "Loss per token": draw_losses,
    "Gradient": _draw_gradient,
    "Update": _draw_update,
    "One matrix": _draw_matrix,
    "Loss after": _draw_after,
}


def update_code(run: Run, step: int, is_saved: bool) -> None:
    torch.set_num_threads(1)  # like the worker: sums in another order round otherwise
    task, training = run.task(), training_at(run, run.spec, step)
    began = at_saved_step(run, run.spec) if is_saved else None
    began = began or at_step_0(run, run.spec)
    for _ in train_on(began, run, task, run.spec, step):
        pass
    update = take_apart(began.model, lambda at: task.batch(at, training), training, began.state)
    print(update.report, update.loss_after)
    for each in by_block(update.parameters()):
        print(each.name, each.gradient_norm, each.ratio)
