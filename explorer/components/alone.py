"""A part of a page that is drawn alone when only it changes: Streamlit's fragment, made safe.

Of a message that the browser has already, Streamlit sends only a hash. When a fragment is drawn
again before the browser has heard all of the drawing before, what still waits is taken back,
but for the hashes: they name places that the newer drawing may not have, and then the browser
loses the whole page. So a fragment's messages are sent in full, and what would be a hash most
often, the code of its views, stands before it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.components import mounting

P = ParamSpec("P")


def alone(
    *kinds: str, every: float | None = None
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Draw this part alone when something in it is clicked, and every so many seconds if told to.

    `kinds` are the views in it. One that is not named is drawn too, with its code in every
    message.
    """

    def decorate(draw: Callable[P, None]) -> Callable[P, None]:
        fragment = st.fragment(_in_full(draw), run_every=every)

        @wraps(draw)
        def with_code(*args: P.args, **kwargs: P.kwargs) -> None:
            with st.container(gap=None):  # the code takes no room
                mounting.mount_code(kinds)
                fragment(*args, **kwargs)

        return with_code

    return decorate


def _in_full(draw: Callable[P, None]) -> Callable[P, None]:
    @wraps(draw)
    def sent(*args: P.args, **kwargs: P.kwargs) -> None:
        run = get_script_run_ctx()
        if run is None:
            draw(*args, **kwargs)
            return
        known, run.cached_message_hashes = run.cached_message_hashes, frozenset()
        try:
            draw(*args, **kwargs)
        finally:
            run.cached_message_hashes = known

    return sent
