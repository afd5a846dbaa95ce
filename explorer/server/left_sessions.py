"""Ends the sessions whose readers left, every so often while the server lives."""

from __future__ import annotations

import asyncio
import logging

from explorer.app import streamlit_patches

log = logging.getLogger("explorer")

EVERY = 30
"""Seconds between two looks."""


async def end_left_sessions() -> None:
    """Look again and again; cancelled with the server."""
    while True:
        await asyncio.sleep(EVERY)
        try:
            streamlit_patches.forget_who_left()
        except Exception:
            log.exception("Sessions that were left could not be ended.")
