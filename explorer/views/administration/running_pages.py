"""The pages that compute or wait for it now, for readers shown as numbers; they can be stopped."""

from __future__ import annotations

import time

import streamlit as st

from explorer.app.session import session
from explorer.app.throttle import at_work
from explorer.views.administration.reader_numbers import Numbers
from explorer.views.training.run_words import duration


def draw_pages(numbers: Numbers) -> None:
    """Most are there for a moment, so all that are shown are stopped together."""
    running = at_work()
    st.markdown(f"**Pages at work** · {len(running):,} computing or waiting for a turn")
    if not running:
        return
    rows = [
        {
            "whose": numbers.get(each.owner, ""),
            "page": each.page,
            "state": "waiting" if each.waits else "computing",
            "for": duration(time.monotonic() - each.began),
        }
        for each in running
    ]
    st.dataframe(rows, key="running_pages", hide_index=True, width="stretch")
    shown = [each.number for each in running]
    st.button("Stop these", key="admin_stop_pages", on_click=stop_pages, args=(shown,))


def stop_pages(numbers: list[int]) -> None:
    """End those that are still there; for a callback."""
    if session().is_admin:
        for each in at_work():
            if each.number in numbers:
                each.stop()
