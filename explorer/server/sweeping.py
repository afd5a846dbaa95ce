"""Ends the sessions whose readers left and removes what is kept no longer."""

from __future__ import annotations

import asyncio
import logging

from explorer.app import streamlit_patches
from explorer.catalog.folders import runs_root, uploads_root

log = logging.getLogger("explorer")

EVERY = 30
"""Seconds between two looks."""


async def sweep_again_and_again() -> None:
    """Cancelled with the server."""
    while True:
        await asyncio.sleep(EVERY)
        try:
            streamlit_patches.forget_who_left()
            await asyncio.to_thread(sweep)
        except Exception:
            log.exception("What readers left could not be removed.")


def sweep() -> None:
    """Also where nobody comes who makes another."""
    # They load torch, which the server does not wait for when it starts.
    from explorer.catalog import uploads
    from explorer.inference import results_cache
    from explorer.runs import run

    results_cache.forget_unused()
    uploads.sweep(uploads_root())
    run.sweep(runs_root())
