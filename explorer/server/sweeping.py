"""Ends the sessions whose readers left and removes what is kept no longer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from explorer.app import streamlit_patches
from explorer.system.data_folders import runs_root, uploads_root

log = logging.getLogger("explorer")

EVERY = 30
"""Seconds between two looks."""


async def sweep_again_and_again() -> None:
    """Cancelled with the server."""
    while True:
        await asyncio.sleep(EVERY)
        with _going_on():
            streamlit_patches.forget_who_left()
        await asyncio.to_thread(sweep)


def sweep() -> None:
    """Also where nobody comes who makes another."""
    # They load torch, which the server does not wait for when it starts.
    from explorer.catalog import uploads
    from explorer.inference import results_cache
    from explorer.runs import deleting
    from explorer.system import long_texts

    with _going_on():
        results_cache.forget_unused()
    with _going_on():
        uploads.sweep(uploads_root())
    with _going_on():
        deleting.sweep(runs_root())
    with _going_on():
        long_texts.sweep()


@contextmanager
def _going_on() -> Iterator[None]:
    """What fails in here is noted, and keeps nothing else from being removed."""
    try:
        yield
    except Exception:
        log.exception("What readers left could not be removed.")
