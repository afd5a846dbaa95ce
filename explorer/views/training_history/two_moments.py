"""One head at two steps of its training, and what changed."""

import streamlit as st

from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.views.shared.map_pair import Head, MapSide, draw_map_pair
from explorer.views.training_history.moments import History, PassAtStep

VIEW, TITLE = "history_view", "Two moments"
FIRST, SECOND = "first_step", "second_step"
STEP_WIDTH = 120


def draw_two_moments(context: PageContext, history: History) -> None:
    """Both maps on one scale, and the difference around zero."""
    named = {str(each.step): each for each in history.passes}
    names = [*named]
    with st.container(horizontal=True):
        first = one_of(FIRST, names, names[0], width=STEP_WIDTH, as_list=True)
        second = one_of(SECOND, names, names[-1], width=STEP_WIDTH, as_list=True)
    sides = _side(context, named[first]), _side(context, named[second])
    top = max(float(side.values.max()) for side in sides)
    title = history.run.title
    draw_map_pair(*sides, top or 1.0, models=(title, title), keys=("moment_first", "moment_second"))


def _side(context: PageContext, one: PassAtStep) -> MapSide:
    at = context.choice
    head = Head(one.forward, at.part, at.layer, at.head)
    return MapSide(f"Step {one.step:,}", head)
