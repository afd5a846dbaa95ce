"""A part of a page that is drawn alone when only it changes: Streamlit's fragment, made safe.

A fragment's messages are sent in full (`streamlit_patches` says why), so the code of the views
stands before it; and what it no longer draws is no longer exported.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from explorer.components import mounting

P = ParamSpec("P")


def fragment(
    *, every: float | None = None, key: str | None = None
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Draw this part alone when something in it is clicked, or every so many seconds.

    A callback outside it has it drawn by its `key` (`st.rerun(key)`).
    """

    def decorate(draw: Callable[P, None]) -> Callable[P, None]:
        @wraps(draw)
        def with_code(*args: P.args, **kwargs: P.kwargs) -> None:
            keys: list[str] = []  # of this part on this reader's page, until the page is drawn anew

            @wraps(draw)
            def again() -> None:
                with mounting.drawn_again(keys):
                    draw(*args, **kwargs)

            with st.container(gap=None):  # the code takes no room
                mounting.mount_code()
                st.fragment(again, run_every=every, key=key)()

        return with_code

    return decorate
