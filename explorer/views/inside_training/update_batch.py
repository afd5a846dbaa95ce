"""The batch of an update: its examples as the model reads them, and the loss of every label."""

import streamlit as st
import torch

from explorer.app.controls import number
from explorer.components import matrix
from explorer.tasks.data_summary import examples_of
from explorer.text.number_format import three
from explorer.views.inside_training.chosen_run import InsideRun
from explorer.views.inside_training.update_found import FoundUpdate
from explorer.views.shared import widgets
from explorer.views.shared.batch_example import BATCH_EXPLAINED, draw_example
from models.losses import IGNORE
from models.training import Batch

DRAWN, PICTURE_HEIGHT = 64, 480
"""Examples and positions of the picture of losses, of more the first; pixels of it."""
HIDDEN_BATCHES = (
    "This run learns from the text of another reader, so its batches are not shown. The other "
    "stages are."
)


def draw_batch(chosen: InsideRun, found: FoundUpdate) -> None:
    """One example of the batch, token by token, with what is to be predicted under each."""
    if chosen.hides_text:
        st.text(HIDDEN_BATCHES)
        return
    at = _choose_example(found)
    _draw_example(chosen, found, at)
    count, labels = len(found.update.batch.labels), found.update.batch.labels
    known = int((labels != IGNORE).sum())
    st.caption(
        f"This batch has {count:,} examples and {known:,} labels.{_how_to_read(labels)} What is "
        f"held out ({chosen.task.held_out}) is never in a batch."
    )


def _how_to_read(labels: torch.Tensor) -> str:
    return "" if labels.dim() == 1 else f" {BATCH_EXPLAINED}"


def draw_losses(chosen: InsideRun, found: FoundUpdate) -> None:
    """The loss of every label of the batch, and of one example on its tokens."""
    update = found.update
    has_label = (update.batch.labels != IGNORE).cpu()
    losses = update.losses.view(len(update.losses), -1)[:DRAWN, :DRAWN]
    drawn = has_label.view(len(has_label), -1)[:DRAWN, :DRAWN]
    rows, columns = losses.shape
    left, right = widgets.side_by_side(1, 1)
    with left:
        if chosen.hides_text:
            st.text(HIDDEN_BATCHES)
        else:
            _draw_example(chosen, found, _choose_example(found), with_losses=True)
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
            height=PICTURE_HEIGHT,
        )
    known = update.losses[has_label]
    is_cut = losses.numel() < update.losses.numel()
    cut = f" The picture has the first {rows} examples and {columns} positions." if is_cut else ""
    if known.isfinite().all():
        mean, most = three(float(known.mean())), three(float(known.max()))
        said = f"their mean, {mean} nats, is the loss of the batch. The largest is {most} nats."
    else:
        count = int((~known.isfinite()).sum())
        said = f"{count:,} of {len(known):,} are not finite, since the training has diverged."
    st.caption(f"−ln of the probability of each label; {said}{_smoothed(chosen, update.step)}{cut}")


def _smoothed(chosen: InsideRun, step: int) -> str:
    smoothing = chosen.training(step).label_smoothing
    return f" Label smoothing of {three(smoothing)} is included." if smoothing else ""


def _choose_example(found: FoundUpdate) -> int:
    return number("update_example", len(found.update.batch.labels) - 1, width=420)


def _draw_example(
    chosen: InsideRun, found: FoundUpdate, at: int, *, with_losses: bool = False
) -> None:
    """As it is drawn before a training, with the loss of each label where they are asked for."""
    batch = found.update.batch
    one = Batch(tuple(ids[at : at + 1] for ids in batch.inputs), batch.labels[at : at + 1])
    (example,) = examples_of(chosen.task, one, 1)
    losses = torch.atleast_1d(found.update.losses[at]).tolist() if with_losses else None
    draw_example(example, f"example {at}", "update_reads", losses)
