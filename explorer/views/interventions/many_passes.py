"""What the views share that run the model many times: the cost, the Run button, the base."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import streamlit as st

from explorer.analysis.ablation import QUICK, RecordedPass
from explorer.app.session import session
from explorer.inference.edited_pass import EditedPass
from explorer.inference.model_inputs import ids_of

CodeLines = Callable[[], str] | None
"""Makes the lines of Python behind a view; None where it shows nothing."""
SECONDS_PER_QUICK = 3
NO_HEAD = "This model has no output head, so there is no output to compare."


def recorded_pass(edited: EditedPass, position: int) -> RecordedPass:
    """The base that all the passes branch off from."""
    forward = edited.forward
    inputs = [ids_of([tokens]) for tokens in (forward.source, forward.target) if tokens]
    return RecordedPass(forward.trace, inputs, position, edited.core_edits)


def identity(edited: EditedPass) -> tuple[Hashable, ...]:
    """What distinguishes this pass from others of the same model."""
    return edited.forward.text, edited.forward.pair, edited.applied


def base_words(edited: EditedPass) -> str:
    """Which pass the many passes differ from."""
    return "in the pass with your interventions" if edited.applied else "in the original pass"


def is_started(name: str, asked: Hashable, multiplications: int) -> bool:
    """Whether to run now: at once where it is quick, else after a click for exactly this."""
    if multiplications <= QUICK or session().long_runs.get(name) == asked:
        return True
    seconds = SECONDS_PER_QUICK * multiplications / QUICK
    st.text(f"This runs a large part of the model many times: about {seconds:.0f} seconds.")
    st.button("Run", key=f"begin_{name}", on_click=_start, args=(name, asked), type="primary")
    return False


def _start(name: str, asked: Hashable) -> None:
    session().long_runs[name] = asked
