"""The start of a run: of the form's settings, or of the run on screen once more."""

from dataclasses import replace
from typing import Any

import streamlit as st

from explorer.app.messages import say
from explorer.app.reader_runs import is_own, may_change, whose, whose_network
from explorer.catalog import ModelError, in_a_sentence
from explorer.runs.cluster import cluster
from explorer.runs.finetuning import PARENT
from explorer.runs.run import Run, open_folder
from explorer.runs.run_differences import differences
from explorer.runs.spec import LARGEST_SEED, RunError, RunSpec
from explorer.tasks import stored_tokenizer
from explorer.text import TextError
from explorer.text.labels import literal
from explorer.views.training.own_text import OwnText
from explorer.views.training.run_list import choose_run_next

MOST_RUNS_NAMED = 4
RESETS = {
    "Same weights": "The same run from step 0: the same weights, the same batches.",
    "New weights": "Other weights at step 0, from the next seed; the same batches.",
    "New data": "The same weights at step 0; other batches, from the next seed.",
}


def draw_start_button(place: Any, spec: RunSpec | None, own: OwnText, run: Run | None) -> None:
    """The start; disabled without a spec. A run of the task on screen that trains is stopped."""
    ends = run if run is not None and spec and _is_of(run, spec.task) and _trains(run) else None
    clicked = place.button(
        "Restart" if ends else "Start training",
        type="primary",
        width="stretch",
        key="start_training" if spec else None,
        icon=":material/restart_alt:" if ends else ":material/play_arrow:",
        disabled=spec is None,
        help=f"Stops {literal(ends.title)}, and starts a new run with these settings."
        if ends
        else None,
    )
    if clicked and spec:
        with place:
            start(spec, own, ends)


def _is_of(run: Run, task: str) -> bool:
    try:
        return run.spec.task == task
    except RunError:
        return False


def draw_resets(run: Run, now: RunSpec) -> None:
    """The run on screen once more from step 0, a click for each way."""
    if not is_own(run):
        return
    with st.container(gap=None):
        st.caption(f"Start {literal(run.title)} again with")
        with st.container(horizontal=True, gap="small"):
            clicked = [
                label
                for label, words in RESETS.items()
                if st.button(label, key=f"reset_{_key(label)}", type="tertiary", help=words)
            ]
    for label in clicked[:1]:
        try:
            parent = open_folder(run.folder / PARENT) if now.parent else None
        except ModelError as error:
            say(str(error))
            return
        own = OwnText(run.text(), run.tokenizer(), parent)
        start(reset(now, label), own, run if _trains(run) else None)


def reset(spec: RunSpec, label: str) -> RunSpec:
    """The same settings, with other seeds where `label`, of `RESETS`, says so."""
    if label == "New weights":
        return replace(spec, weights_seed=(spec.weights_seed + 1) % LARGEST_SEED)
    if label == "New data":
        seed = (spec.training.seed + 1) % LARGEST_SEED
        return replace(spec, training=spec.training.replace(seed=seed))
    return spec


def draw_differences(run: Run, now: RunSpec, spec: RunSpec) -> None:
    """In what the form differs from the run on screen, whose settings are `now`."""
    found = differences(now, spec)
    if not found:
        return
    named = ", ".join(each.words for each in found[:MOST_RUNS_NAMED])
    more = f", and {len(found) - MOST_RUNS_NAMED} more" if len(found) > MOST_RUNS_NAMED else ""
    st.caption(f"Differs from **{literal(run.title)}**: {named}{more}. Needs a restart.")


def start(spec: RunSpec, own: OwnText, instead_of: Run | None = None) -> None:
    """Start a run and show it; one that it is started instead of is stopped, and can go on."""
    try:
        if instead_of is not None:
            cluster().stop(instead_of)
        tokenizer = stored_tokenizer(spec.task, own.text, own.tokenizer)
        made = cluster().train_new(
            spec, own.text, whose(), whose_network(), tokenizer, parent=own.parent
        )
        choose_run_next(made)
    except (RunError, TextError, OSError) as error:
        say(in_a_sentence(error))
    else:
        st.rerun()  # with the new run beside the form


def _trains(run: Run) -> bool:
    """Whether it is this reader's and trains, or waits to."""
    return is_own(run) and may_change(run) and run.status_or_new().is_active


def _key(label: str) -> str:
    return label.lower().replace(" ", "_")
