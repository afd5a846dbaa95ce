"""One update in slow motion: from the batch to the loss after it, a stage at a time."""

from collections.abc import Callable

import streamlit as st
import torch

from explorer.analysis.one_update import GOOD_RATIO, OneUpdate, by_block, take_apart
from explorer.analysis.weight_statistics import pooled
from explorer.app.controls import one_of
from explorer.charts.bars import block_bars, block_points, height_of
from explorer.components import matrix
from explorer.components.chart import chart
from explorer.runs.retraining import saved, trained_on, training_at, untrained
from explorer.runs.run import Run
from explorer.text.number_format import three
from explorer.views.inside_training.chosen_run import InsideRun
from explorer.views.inside_training.update_batch import draw_batch, draw_losses
from explorer.views.inside_training.update_found import (
    FoundUpdate,
    first_step,
    steps_offered,
    update_after,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.step_slider import stepper
from explorer.views.shared.tables import facts

PICTURE_HEIGHT = 420
ALREADY_TRAINED = "This run has no step before its last, so there is no update to take apart."


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
    found = update_after(chosen, step)
    if found is None:
        return None
    name = list(STAGES)[stage]
    st.markdown(f"**Update {step + 1:,} of {chosen.spec.training.steps:,} · {name}**")
    STAGES[name](chosen, found)
    st.caption(found.note)
    return script(update_code, chosen.run, step, found.is_saved)


def _draw_gradient(chosen: InsideRun, found: FoundUpdate) -> None:
    update = found.update
    blocks = by_block(update.parameters())
    drawn, beside = widgets.side_by_side(7, 3)
    names, values = [each.name for each in blocks], [each.gradient_norm for each in blocks]
    with drawn:
        spec = block_bars(names, values, "gradient norm")
        title = f"Gradient norm of every part, update {update.step + 1:,}"
        chart(spec, height=height_of(names), key="gradient_norms", title=title)
    with beside:
        facts(
            [
                ("gradient norm", three(update.report.grad_norm)),
                ("clipped to", three(update.clip) if update.clip else "not clipped"),
                ("multiplied by", three(update.scale)),
            ]
        )
    st.caption(
        "‖∂loss/∂w‖ over all weights of a part, before clipping. Where the norm over all parts is "
        "above the clipping threshold, every gradient is multiplied by the same factor."
    )


def _draw_update(chosen: InsideRun, found: FoundUpdate) -> None:
    update = found.update
    if not found.has_state:
        return
    blocks = by_block(update.parameters())
    drawn, beside = widgets.side_by_side(7, 3)
    names, values = [each.name for each in blocks], [each.ratio for each in blocks]
    with drawn:
        spec = block_points(names, values, "‖update‖ ÷ ‖weights‖", GOOD_RATIO)
        title = f"Update over weights of every part, update {update.step + 1:,}"
        chart(spec, height=height_of(names), key="update_ratios", title=title)
    with beside:
        facts(
            [
                ("optimizer", chosen.spec.training.optimizer),
                ("learning rate", three(update.report.lr)),
            ]
        )
    st.caption(
        "The norm of the update of a part, divided by the norm of its weights. A rule of thumb is "
        f"about {GOOD_RATIO:g}, the dashed line: far above it training becomes unstable, far below "
        "it is slow. Weights that are still zero, such as biases at first, have no ratio."
    )


def _draw_matrix(chosen: InsideRun, found: FoundUpdate) -> None:
    update = found.update
    matrices = [name for name, each in update.before.items() if each.dim() > 1]
    usual = next((name for name in matrices if "q_proj" in name), matrices[0])
    name = one_of("update_matrix", matrices, usual, as_list=True, width=420)
    moved = update.after[name] - update.before[name]
    pictures = [("Gradient", update.gradients[name])] + [("Update", moved)] * found.has_state
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
    st.caption(_about_matrix(update, name, pooled(update.gradients[name]).sentence, found))


def _about_matrix(update: OneUpdate, name: str, cell: str, found: FoundUpdate) -> str:
    said = f"{cell} Blue is above zero, red below."
    if not found.has_state:
        return said
    share = three(100 * update.against_gradient(name))
    return (
        f"{said} {share} % of the weights move against this batch's gradient. The others follow "
        "the earlier batches that the optimizer remembers, or weight decay."
    )


def _draw_after(chosen: InsideRun, found: FoundUpdate) -> None:
    update = found.update
    if not found.has_state:
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


STAGES: dict[str, Callable[[InsideRun, FoundUpdate], None]] = {
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
    began = saved(run, run.spec) if is_saved else None
    began = began or untrained(run, run.spec)
    for _ in trained_on(began, run, task, run.spec, step):
        pass
    update = take_apart(began.model, lambda at: task.batch(at, training), training, began.state)
    print(update.report, update.loss_after)
    for each in by_block(update.parameters()):
        print(each.name, each.gradient_norm, each.ratio)
