"""The update that a run does after one of its steps, taken apart, and where its state is from."""

from dataclasses import dataclass

import streamlit as st

from explorer.analysis.ablation import MOST, QUICK
from explorer.analysis.one_update import OneUpdate, take_apart
from explorer.app.messages import say
from explorer.app.progress import bar
from explorer.catalog.pass_budget import MEMORY
from explorer.inference.results_cache import if_kept, kept
from explorer.runs.retraining import (
    Trained,
    from_snapshot,
    largest_difference,
    saved,
    saved_step,
    trained_on,
    untrained,
)
from explorer.text.number_format import three
from explorer.views.inside_training.chosen_run import InsideRun, has_room
from explorer.views.shared.measurement import is_started, stoppable
from models.losses import has_large_logits

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


def _beginning(chosen: InsideRun, step: int) -> tuple[Trained, str, bool] | None:
    """The training before this update, and what is said of it."""
    if step == saved_step(chosen.run) and (began := saved(chosen.run, chosen.spec)):
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


def _trained_again(chosen: InsideRun, step: int) -> Trained | None:
    """The run trained to this step, from the last snapshot that was reached before."""
    marks = [mark for mark in chosen.steps if mark <= step]
    keys = {mark: ("trained", chosen.identity(mark)) for mark in marks}
    known = [if_kept(chosen.first, keys[mark]) for mark in reversed(marks)]
    began: Trained = next(filter(None, known), None) or untrained(chosen.run, chosen.spec)
    done = began.state.step
    cost = chosen.cost_of_step * (step - done)
    if not is_started("one_update", (chosen.run.name, step), cost, "Training again:"):
        return None
    with stoppable("one_update", cost), bar("Training again") as report:
        for mark in marks:
            if mark < done:
                continue

            def make(began: Trained = began, mark: int = mark) -> Trained:
                trained = began.copy()
                for at in trained_on(trained, chosen.run, chosen.task, chosen.spec, mark):
                    report(at / max(1, step))
                return trained

            began = kept(chosen.first, keys[mark], make)
    return began


def _cost(chosen: InsideRun, step: int) -> int:
    return chosen.cost_of_step * step
