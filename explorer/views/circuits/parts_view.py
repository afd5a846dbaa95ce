"""Heads and feed-forward layers that carry the difference: estimates and exact values."""

from collections.abc import Sequence

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.ablation_and_patching import exact_writers
from explorer.analysis.attribution_patching import attribute, attribute_writers
from explorer.analysis.circuit_metrics import KL, LOSS, UNITS, metric_in_words
from explorer.analysis.circuits.circuit_scores import (
    METHODS,
    EdgeScores,
    attributions,
    contrast_of,
    correlation,
    node_of,
    scores_of,
)
from explorer.analysis.circuits.text_pairs import Question
from explorer.analysis.wiring import edge_grid
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.catalog.attention_parts import map_title
from explorer.catalog.opened_model import OpenModel
from explorer.charts.circuit_charts import estimate_and_exact
from explorer.components.chart import chart
from explorer.text.number_format import three
from explorer.views.circuits.question_scores import (
    cached_exact_parts,
    choose_method,
    exact_of_parts,
    scores_of_question,
    scores_table,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import code_panel, script
from explorer.views.shared.heads_grid import heads_grid
from models.gradients import gradients

ESTIMATE, EXACT = "Estimate", "Exact value"
NAMED, SCATTER = 3, 340
LOWER_IS_BETTER = " This metric is lower for the clean text, so what helps the answer is negative."


def draw_parts(context: PageContext, question: Question, adjust: DeltaGenerator) -> None:
    """A grid of heads, the strongest parts of any kind, and estimates against exact values."""
    opened, at = context.opened, context.choice
    with adjust, st.container(horizontal=True):
        method = choose_method(question)
        is_exact = one_of("circuit_values", (ESTIMATE, EXACT)) == EXACT
    if method is None:
        return
    scores = scores_of_question(opened, question, method)
    if scores is None:
        return
    left, right = widgets.side_by_side(6, 5)
    wiring, estimates = scores.wiring, scores.writers.tolist()
    names = [node_of(place).title for place in wiring.columns]
    spread = () if scores.writers_spread is None else scores.writers_spread.tolist()
    with right:
        is_measured = exact_of_parts(opened, question) is not None
        exact = cached_exact_parts(opened, question, scores)
        st.markdown("**Strongest parts**")
        error = question.error
        scores_table("part", names, method, estimates, exact=exact, spread=spread, error=error)
    with left:
        values = [torch.nan if value is None else value for value in exact]
        grid = edge_grid(wiring, wiring.columns, values if is_exact else estimates).mT
        unit, pairs = UNITS[question.metric], len(question.pairs)
        over = f", the mean over {pairs} pairs" if pairs > 1 else ""
        lower = LOWER_IS_BETTER if question.metric in (LOSS, KL) else ""
        heads_grid(
            context,
            grid,
            key="circuit_heads",
            title=map_title(
                at.called, at.part, f"Each head's part of the {metric_in_words(question.metric)}"
            ),
            unit=unit,
            absent="not measured",
            scale="diverging",
            top=float(grid[:, : wiring.heads].abs().nan_to_num().max()) or None,
            error=question.error if is_exact else 0.0,
        )
        st.caption(
            f"How much of the metric{f', in {unit},' if unit else ''} is lost when one part alone "
            f"writes what it wrote for the corrupted text{over}. The whole difference is "
            f"{three(scores.difference)}. Positive parts raise the metric. The colour scale ends "
            f"at the strongest head. Heads are named layer.head.{lower}"
        )
    if is_measured:
        _draw_agreement(scores, names, values, method)
    score = attribute if scores.edges is not None else attribute_writers
    code_panel(gradients, score, script=script(parts_code, opened, question, METHODS[method]))


def _draw_agreement(
    scores: EdgeScores, names: Sequence[str], exact: Sequence[float], method: str
) -> None:
    """A chart of estimate against exact value for every part, and the largest errors."""
    kinds = [place.kind for place in scores.wiring.columns]
    estimates = scores.writers.tolist()
    scatter, numbers = widgets.side_by_side(6, 5)
    with scatter:
        spec = estimate_and_exact(names, kinds, estimates, exact)
        title = f"Exact value of every part against its estimate by {method}"
        chart(spec, height=SCATTER, key="estimates", title=title)
    with numbers:
        parts = range(len(names))
        heads = [at for at in parts if kinds[at] == "head"]
        for what, some in (("all parts", parts), ("the heads", heads)):
            r = correlation([estimates[at] for at in some], [exact[at] for at in some])
            if r is not None:
                st.text(f"Pearson's r of estimate and exact value over {what}: {r:.3f}.")
        st.text(
            "Where the estimate is furthest from the exact value: "
            + "; ".join(
                f"{names[at]} ({three(estimates[at])} estimated, {three(exact[at])} exact)"
                for at in sorted(parts, key=lambda at: -abs(exact[at] - estimates[at]))[:NAMED]
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
