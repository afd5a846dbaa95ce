"""Which heads and feed-forward layers carry the difference: estimates beside exact values."""

from collections.abc import Sequence

import streamlit as st
import torch

from explorer.analysis.attribution_patching import attribute, attribute_writers
from explorer.analysis.circuit_metrics import KL, LOSS, UNITS, metric_in_words
from explorer.analysis.circuits.measure import (
    METHODS,
    EdgeScores,
    attributions,
    contrast_of,
    correlation,
    exact_writers,
    node_of,
    scores_of,
)
from explorer.analysis.circuits.text_pairs import Question
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.catalog.attention_parts import map_title
from explorer.catalog.open_model import OpenModel
from explorer.charts.circuit_charts import estimate_and_exact
from explorer.components.chart import chart
from explorer.components.picker import AROUND_CELLS, cells, cells_height
from explorer.text.number_format import three
from explorer.views.circuits.measured import (
    choose_method,
    exact_of_writers,
    scores_of_question,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import code_panel, script
from models.gradients import gradients

ESTIMATE, EXACT = "Estimate", "Exact value"
FEED_FORWARD = "MLP"
LISTED, NAMED = 10, 3
SCATTER = 340
MAP_WIDTH = 930
"""Pixels that the grid has at most, and so its square cells at most their share of it."""


def draw_parts(context: PageContext, question: Question) -> None:
    """The grid of heads, the strongest parts of any kind, and estimates against exact values."""
    with st.container(horizontal=True):
        method = choose_method(question)
        which = one_of("circuit_values", (ESTIMATE, EXACT))
    if method is None:
        return
    scores = scores_of_question(context, question, method)
    if scores is None:
        return
    left, right = widgets.side_by_side(6, 5)
    with right:
        exact = exact_of_writers(context, question)
        values: list[float | None] = [*(exact or ())]
        values = values or [None] * len(scores.writers)
        _draw_strongest(question, scores, values, method)
    with left:
        if which == EXACT:
            _draw_grid(context, question, scores, values, question.error)
        else:
            _draw_grid(context, question, scores, scores.writers.tolist())
        unit = UNITS[question.metric]
        st.caption(
            f"How much of the metric{f', in {unit},' if unit else ''} is lost when a part alone "
            f"gets what it wrote for the corrupted text{_over(question)}. All of it is "
            f"{three(scores.difference)}. Positive parts raise the metric. Colours end at the "
            f"strongest head. Heads are named layer.head.{_lower_is_better(question)}"
        )
    if exact is not None:
        _draw_agreement(scores, values, method)
    score = attribute if scores.edges is not None else attribute_writers
    lines = script(parts_code, context.opened, question, METHODS[method])
    code_panel(gradients, score, script=lines)


def _lower_is_better(question: Question) -> str:
    if question.metric not in (LOSS, KL):
        return ""
    return " This metric is lower for the clean text, so what helps the answer is negative."


def _over(question: Question) -> str:
    count = len(question.pairs)
    return f", the mean over {count} pairs" if count > 1 else ""


def _draw_grid(
    context: PageContext,
    question: Question,
    scores: EdgeScores,
    values: Sequence[float | None],
    error: float = 0.0,
) -> None:
    """Layers across, heads down, and the feed-forward layers in the last row.

    `error` is what a value may be off by: an exact one is a difference of two passes.
    """
    at, wiring = context.choice, scores.wiring
    rows = [*map(str, range(wiring.heads)), *([FEED_FORWARD] if wiring.has_mlp else [])]
    grid = torch.full((len(rows), wiring.layers), torch.nan)
    of_heads = [0.0]
    for place, value in zip(wiring.columns, values, strict=True):
        if value is None or place.kind == "embedding":
            continue
        row = place.head if place.kind == "head" else -1
        grid[row, place.layer] = value
        of_heads += [abs(value)] if place.kind == "head" else []

    metric = metric_in_words(question.metric)

    def pick(row: int, layer: int) -> None:
        if row < wiring.heads:
            choose_head(layer, row)

    cells(
        grid,
        rows,
        [*map(str, range(wiring.layers))],
        key="circuit_heads",
        title=map_title(at.called, at.part, f"Each head's part of the {metric}"),
        selected=(at.head, at.layer),
        on_pick=pick,
        row_name="head",
        column_name="layer",
        sentence="Layer {column}, head {row}: {value}",
        unit=UNITS[question.metric],
        absent="not measured",
        scale="diverging",
        top=max(of_heads) or None,
        height=min(
            cells_height(len(rows)), AROUND_CELLS + len(rows) * MAP_WIDTH // (wiring.layers + 1)
        ),
        error=error,
    )


def _draw_strongest(
    question: Question, scores: EdgeScores, exact: list[float | None], method: str
) -> None:
    st.markdown("**Strongest parts**")
    order = scores.writers.abs().argsort(descending=True)[:LISTED].tolist()
    table = {
        "part": [node_of(scores.wiring.columns[at]).title for at in order],
        method: [three(float(scores.writers[at])) for at in order],
        "exact": ["" if (v := exact[at]) is None else three(v, question.error) for at in order],
    }
    if scores.writers_spread is not None:
        table["spread"] = [three(float(scores.writers_spread[at])) for at in order]
    right = st.column_config.TextColumn(alignment="right")
    st.dataframe(table, hide_index=True, column_config=dict.fromkeys([*table][1:], right))


def _draw_agreement(scores: EdgeScores, exact: list[float | None], method: str) -> None:
    """Estimate against exact value of every part that was patched, and what was missed."""
    known = [at for at, value in enumerate(exact) if value is not None]
    places = [scores.wiring.columns[at] for at in known]
    names = [node_of(place).title for place in places]
    about = [float(scores.writers[at]) for at in known]
    values = [value for value in exact if value is not None]
    drawn, said = widgets.side_by_side(6, 5)
    with drawn:
        spec = estimate_and_exact(names, [place.kind for place in places], about, values)
        title = f"Exact value of every part against its estimate by {method}"
        chart(spec, height=SCATTER, key="estimates", title=title)
    with said:
        heads = [at for at, place in enumerate(places) if place.kind == "head"]
        for what, some in (("all parts", range(len(known))), ("the heads", heads)):
            r = correlation([about[at] for at in some], [values[at] for at in some])
            if r is not None:
                st.text(f"Pearson's r of estimate and exact value over {what}: {r:.3f}.")
        missed = sorted(range(len(known)), key=lambda at: -abs(values[at] - about[at]))[:NAMED]
        st.text(
            "Where the estimate is furthest from the exact value: "
            + "; ".join(
                f"{names[at]} ({three(about[at])} estimated, {three(values[at])} exact)"
                for at in missed
            )
            + "."
        )
        st.caption(
            "The estimate is linear: it multiplies the difference of what a part wrote for the two "
            "texts with a gradient. Patching runs the model again, once for every part."
        )


def parts_code(opened: OpenModel, question: Question, steps: int) -> None:
    scores = scores_of(opened, [*attributions(opened, question, steps)])
    exact = torch.zeros_like(scores.writers)
    for pair in question.pairs:
        for columns, lost in exact_writers(contrast_of(opened, pair)):
            exact[columns] += lost / len(question.pairs)
    for place, about, value in zip(scores.wiring.columns, scores.writers, exact, strict=True):
        print(node_of(place).title, float(about), float(value))
