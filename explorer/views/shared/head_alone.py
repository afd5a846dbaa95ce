"""What follows the chosen head, drawn again alone when another is chosen.

The rest of the page, the navigation and most of the bar then stay on screen as they are. It costs
the server about a third of a page, and fifty readers at once notice it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Concatenate, ParamSpec

import streamlit as st

from explorer.app import streamlit_patches, widget_state
from explorer.app.choice import Choice
from explorer.app.choosing import HEAD_ALONE, has_notes
from explorer.app.context import CurrentContext, PageContext, make_context, page_context
from explorer.app.session import HeadAlone, session, state_of
from explorer.app.throttle import count_seconds, turn
from explorer.components.fragment import fragment
from explorer.views.shared.sidebar_parts import mark_layer

P = ParamSpec("P")


def head_alone(
    draw: Callable[Concatenate[PageContext, P], None],
) -> Callable[P, None]:
    """Draw this again alone when another head is chosen, in the bar or with `draw_head_alone`.

    It is given the context of the run, in which the head is the chosen one.
    """

    @fragment(key=HEAD_ALONE)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
        now = session().head_alone
        if now is None:  # the page is run by itself, without the bar
            draw(page_context(), *args, **kwargs)
            return
        with _context(now) as context:
            now.draw_lists()
            draw(context, *args, **kwargs)
            mark_layer(context)  # at the end, where what has no height takes no room

    return drawn


@contextmanager
def _context(now: HeadAlone) -> Iterator[PageContext]:
    """That of the page, within its run; else a new one, with the head that is chosen now."""
    current = state_of(CurrentContext)
    if current.context is not None:
        now.drawn_for = _but_head(current.context.choice)
        yield current.context
        return
    with count_seconds(), turn(), streamlit_patches.one_entry_in_history():
        for name in ("layer", "head"):  # a callback's choice, which Streamlit took as told already
            widget_state.put(name, widget_state.get(name))
        context = current.context = make_context(now.models)
        try:
            if has_notes() or _but_head(context.choice) != now.drawn_for:
                st.rerun()
            yield context
        finally:
            current.context = None


def _but_head(choice: Choice) -> Choice:
    return replace(choice, layer=0, head=0)
