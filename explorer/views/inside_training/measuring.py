"""What the views of snapshots share: the batch that is measured, and work of all snapshots."""

from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

from explorer.system.limits import INSIDE_BYTES
from explorer.views.inside_training.chosen_run import InsideRun
from explorer.views.shared.measurement import measurements
from models.training import Batch

ROWS = 64
"""Held-out examples that are measured."""
TOO_LARGE_TO_MEASURE = (
    "This takes too long with a model of this size: choose the run of a smaller model."
)
Made = TypeVar("Made")


def measured_batch(chosen: InsideRun) -> Batch:
    """The first held-out examples; the same for every snapshot."""
    batch = chosen.task.held_out_batch
    return Batch(tuple(ids[:ROWS] for ids in batch.inputs), batch.labels[:ROWS])


def has_room(needed: int) -> bool:
    """Whether a view that holds so many bytes is computed here; a sentence where it is not."""
    if not INSIDE_BYTES.allows(needed):
        st.text(INSIDE_BYTES.refusal(needed))
    return INSIDE_BYTES.allows(needed)


def batch_words(chosen: InsideRun) -> str:
    """Which examples these are, for a caption."""
    count = len(measured_batch(chosen).labels)
    return f"the first {count} held-out examples"


def batch_tokens(chosen: InsideRun) -> int:
    return sum(ids.numel() for ids in measured_batch(chosen).inputs)


def of_snapshots(
    chosen: InsideRun,
    name: str,
    asked: Hashable,
    make: Callable[[int], Made],
    size: Callable[[Made], int],
    cost: int,
    doing: str,
) -> list[Made] | None:
    """What `make` gives for each snapshot's step, kept; None where it is not all there yet."""
    steps = chosen.steps
    return measurements(
        chosen.first,
        name,
        [(name, asked, chosen.identity(step)) for step in steps],
        lambda at: make(steps[at]),
        size,
        cost=cost * len(steps),
        doing=doing,
        too_long=TOO_LARGE_TO_MEASURE,
    )
