"""Redraw only what depends on the chosen head when the reader chooses another head.

The rest of the page, the navigation and most of the bar stay on screen as they are. This costs the
server about a third of a whole page, which matters with fifty readers at once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Concatenate, ParamSpec

from explorer.app import streamlit_patches, widget_state
from explorer.app.choice import Choice
from explorer.app.choosing import HEAD_ALONE, has_notes
from explorer.app.context import CurrentContext, PageContext, make_context, page_context
from explorer.app.session import HeadAlone, redraw, session, state_of
from explorer.app.throttle import count_seconds, turn
from explorer.components.fragment import fragment
from explorer.views.shared.sidebar_parts import mark_layer

P = ParamSpec("P")


def head_alone(draw: Callable[Concatenate[PageContext, P], None]) -> Callable[P, None]:
    """Run only `draw` again when another head is chosen, in the bar or with `draw_head_alone`.

    `draw` gets the context of the run, with the chosen head.
    """

    @fragment(key=HEAD_ALONE)
    def draw_again(*args: P.args, **kwargs: P.kwargs) -> None:
        now = session().head_alone
        if now is None:  # the page runs alone, without the bar
            draw(page_context(), *args, **kwargs)
            return
        with _context(now) as context:
            now.draw_lists()
            draw(context, *args, **kwargs)
            mark_layer(context)  # at the end, where an element without height takes no room

    return draw_again


@contextmanager
def _context(now: HeadAlone) -> Iterator[PageContext]:
    """The context of the page within its run; else a new one, with the head that is chosen now."""
    current = state_of(CurrentContext)
    if current.context is not None:
        now.drawn_for = _without_head(current.context.choice)
        yield current.context
        return
    with count_seconds(), turn(), streamlit_patches.one_entry_in_history():
        for name in ("layer", "head"):  # a callback chose them, and Streamlit took them as sent
            widget_state.put(name, widget_state.get(name))
        context = current.context = make_context(now.models)
        try:
            if has_notes() or _without_head(context.choice) != now.drawn_for:
                redraw()
            yield context
        finally:
            current.context = None


def _without_head(choice: Choice) -> Choice:
    return replace(choice, layer=0, head=0)
