"""A run that goes on: how far it is, and its film again with each new snapshot."""

import streamlit as st

from explorer.components.fragment import fragment
from explorer.runs.run import Run, RunError
from explorer.views.training.run_words import progress_words

EVERY = 1.0
"""Seconds between two looks into the folder of a run that trains."""


def follow_run(run: Run, shown: int) -> None:
    """Say how far the run is while it trains; the page is drawn again once it has more to show.

    `shown` is how many of its snapshots are on screen.
    """
    try:
        if run.status().is_active:
            fragment(every=EVERY)(_look)(run, shown)
    except RunError:  # the film is there, whatever has become of the rest of the run
        return


def _look(run: Run, shown: int) -> None:
    try:
        status = run.status()
    except RunError:
        return
    if not status.is_active or len(run.snapshots()) != shown:
        st.rerun()
    st.progress(status.share, text=progress_words(status))
