"""Which weights of the two compared models differ: after a training, what it has changed."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from explorer.analysis.weight_change import WeightChanges, weight_changes
from explorer.app.context import PageContext
from explorer.catalog.available_models import stamp_of
from explorer.inference.results_cache import kept
from explorer.text.number_format import three
from explorer.views.shared.map_pair import MapSide

MOST_HEIGHT = 320


def draw_changed_weights(context: PageContext, first: MapSide, second: MapSide) -> None:
    """A row for each matrix that differs; nothing where both sides are one model."""
    ours, theirs = first.forward.trace.model, second.forward.trace.model
    if ours is theirs:
        return
    folder = second.head.folder
    found = kept(
        context.opened,
        ("changed weights", folder, stamp_of(folder)),
        lambda: weight_changes(ours, theirs),
        lambda made: 200 * len(made.matrices),
    )
    st.markdown("**Weights that differ**")
    st.text(sentence(found))
    if found.matrices:
        st.dataframe(rows(found), hide_index=True, key="changed_weights", height=_height(found))


def sentence(found: WeightChanges) -> str:
    """How many matrices were compared, how many differ, and what the columns are."""
    if not found.compared:
        return "No matrix of one model has the name and the shape of one of the other."
    words = f"{len(found.matrices):,} of {found.compared:,} matrices differ."
    if found.alone:
        words += f" {found.alone:,} more are in one model alone, or have another shape there."
    if found.matrices:
        words += (
            " The change is the norm of second − first, divided by that of the first. Its rank "
            "counts the singular values above 1 % of the largest"
        )
        counted = found.matrices[0].rank is not None
        words += "." if counted else ": so many matrices are not counted."
    return words


def rows(found: WeightChanges) -> list[dict[str, str]]:
    """The table, in the order of the model."""
    return [
        {
            "matrix": each.name,
            "change": three(each.relative),
            "rank of the change": "–"
            if each.rank is None
            else f"{each.rank:,} of {each.full_rank:,}",
        }
        for each in found.matrices
    ]


def _height(found: WeightChanges) -> int | Literal["content"]:
    return "content" if len(found.matrices) < 8 else MOST_HEIGHT
