"""The weights that differ between the two compared models: what training changed, for example."""

from collections.abc import Sequence

import streamlit as st

from explorer.analysis.weight_change import (
    MatrixChange,
    WeightChanges,
    rank_of_change,
    weight_changes,
)
from explorer.app.context import PageContext
from explorer.catalog.available_models import stamp_of
from explorer.inference.results_cache import cached
from explorer.text.number_format import shape, three
from explorer.views.shared.map_pair import MapSide
from explorer.views.shared.measurement import measurements
from explorer.views.shared.tables import table

MATRICES_IN_SIGHT, MOST_UNPAIRED = 8, 200
TOO_LARGE_FOR_RANKS = "Their ranks are not counted: with matrices of this size it takes too long."
Row = dict[str, str]


def draw_changed_weights(context: PageContext, first: MapSide, second: MapSide) -> None:
    """Draw a row for each matrix that differs; nothing if both sides are one model."""
    ours, theirs = first.forward.trace.model, second.forward.trace.model
    if ours is theirs:
        return
    key = (second.forward.folder, stamp_of(second.forward.folder))
    changes = cached(
        context.opened, ("changed weights", *key), lambda: weight_changes(ours, theirs)
    )
    st.markdown("**Weights that differ**")
    st.text(sentence(changes))
    ranks = measurements(
        context.opened,
        "ranks",
        [("rank of a change", *key, matrix.name) for matrix in changes.matrices],
        lambda at, _: rank_of_change(ours, theirs, changes.matrices[at].name),
        cost=sum(matrix.cost_of_rank for matrix in changes.matrices),
        doing="Ranks of the changes",
        too_long=TOO_LARGE_FOR_RANKS,
    )
    if changes.matrices:
        table(rows(changes.matrices, ranks), key="changed_weights", most_rows=MATRICES_IN_SIGHT)
    if changes.unpaired:
        count = len(changes.unpaired)
        words = f"Not compared, as only one model has them or their shapes differ: {count:,}"
        if count > MOST_UNPAIRED:
            words += f", of which the first {MOST_UNPAIRED} are listed"
        listed = [
            {
                "matrix": matrix.name,
                "first": shape(matrix.first) if matrix.first else "–",
                "second": shape(matrix.second) if matrix.second else "–",
            }
            for matrix in changes.unpaired[:MOST_UNPAIRED]
        ]
        with st.expander(words):
            table(listed, key="unpaired_weights", most_rows=MATRICES_IN_SIGHT)


def sentence(changes: WeightChanges) -> str:
    """How many matrices were compared, how many differ, and what the columns mean."""
    if not changes.compared:
        return "No matrix of one model has the name and the shape of one of the other."
    words = f"{len(changes.matrices):,} of {changes.compared:,} matrices differ."
    if changes.matrices:
        words += (
            " The change is the norm of second − first, divided by that of the first. Its rank "
            "counts the singular values above 1 % of the largest."
        )
    return words


def rows(matrices: Sequence[MatrixChange], ranks: Sequence[int] | None) -> list[Row]:
    """The matrices that differ, in the model's order; no rank if it was not counted."""
    return [
        {
            "matrix": matrix.name,
            "change": three(matrix.relative),
            "rank of the change": f"{rank:,} of {min(matrix.shape):,}" if rank else "–",
        }
        for matrix, rank in zip(matrices, ranks or [0] * len(matrices), strict=True)
    ]
