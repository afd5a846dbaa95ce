"""A part of a page that is drawn alone when only it changes: Streamlit's fragment, made safe.

A fragment's messages are sent in full (`streamlit_patches` says why), so the code of the views
stands before it; and what it no longer draws is no longer exported.
"""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from explorer.app.session import redraw
from explorer.components import mounting

P = ParamSpec("P")
SHORTEST = 1.0
"""Seconds: no part is drawn more often by a clock."""
SELDOM = 6.0
"""Seconds between two looks at what has not changed for long: each takes five messages."""


def fragment(
    *,
    every: float | None = None,
    key: str | None = None,
    follows: Callable[[], Hashable] = lambda: None,
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Draw this part alone when something in it is clicked, or every so many seconds.

    The whole page is drawn when what the part `follows` is no longer what it was when the page
    was drawn. A callback outside it has it drawn by its `key` (`st.rerun(key)`).
    """
    every = every and max(every, SHORTEST)

    def decorate(draw: Callable[P, None]) -> Callable[P, None]:
        @wraps(draw)
        def with_code(*args: P.args, **kwargs: P.kwargs) -> None:
            keys: list[str] = []  # of this part on this reader's page, until the page is drawn anew
            is_alone, followed = False, follows()

            @wraps(draw)
            def again() -> None:
                if is_alone and follows() != followed:
                    redraw()
                with mounting.drawn_again(keys):
                    draw(*args, **kwargs)

            with st.container(gap=None):  # the code takes no room
                mounting.mount_code()
                st.fragment(again, run_every=every, key=key)()
            is_alone = True

        return with_code

    return decorate


def watch(follows: Callable[[], Hashable], every: float = SELDOM) -> None:
    """Draw the whole page when this changes, and nothing before."""
    fragment(every=every, follows=follows)(lambda: None)()
