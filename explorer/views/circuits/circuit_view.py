"""Heads and edges that carry the difference, circuits of every size, and edges over training."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.ablation_and_patching import exact_edges, exact_writers
from explorer.analysis.attribution_patching import attribute, attribute_writers
from explorer.analysis.circuit_faithfulness import CorruptedPass, smallest_in_words
from explorer.analysis.circuit_metrics import KL, LOSS, UNITS, metric_in_words
from explorer.analysis.circuits.circuit_scores import (
    METHODS,
    EdgeScores,
    ScoresAtStep,
    attributions,
    contrast_of,
    correlation,
    mean_over_pairs,
    nested_circuits,
    node_of,
    over_training,
    scores_of,
    why_no_edges,
    why_not_over_training,
)
from explorer.analysis.circuits.direct_head_effect import composition_of
from explorer.analysis.circuits.text_pairs import Question, why_no_circuits
from explorer.analysis.head_circuits import READS, unrelated
from explorer.analysis.wiring import Edge, edge_grid
from explorer.app import choice
from explorer.app.choosing import choose_model, draw_page_link
from explorer.app.context import PageContext
from explorer.app.controls import expander, one_of, whole
from explorer.catalog.attention_parts import map_title
from explorer.catalog.opened_model import OpenModel
from explorer.charts.circuit_charts import circuit_curves, estimate_and_exact
from explorer.charts.figure_data import WINDOW
from explorer.charts.training_curves import lines_over_steps
from explorer.components.chart import chart
from explorer.components.circuit_map import CircuitMap
from explorer.runs.run import Run, open_folder
from explorer.text.number_format import three
from explorer.text.visible_text import literal
from explorer.views.circuits.circuit_picture import cell_of_edge, draw_circuit_map, picture_of
from explorer.views.circuits.head_card import draw_head_card
from explorer.views.circuits.question_form import question_in_words
from explorer.views.circuits.question_scores import (
    BACKWARD,
    STRONGEST,
    TOO_LONG_FOR_PAIRS,
    cached_exact_parts,
    choose_method,
    cost_of_passes,
    curve_of,
    exact_of_edges,
    exact_of_parts,
    scores_of_question,
    scores_table,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import code_panel, script
from explorer.views.shared.heads_grid import heads_grid
from explorer.views.shared.measurement import Report, measurements
from explorer.views.shared.step_slider import stepper
from explorer.views.shared.training_snapshots import open_snapshot, snapshots_of
from models.gradients import gradients

ESTIMATE, EXACT = "Estimate", "Exact value"
FOLLOWED, NAMED = 6, 3
CURVES_HEIGHT, SCATTER_HEIGHT = 320, 340
LOWER_IS_BETTER = " This metric is lower for the clean text, so what helps the answer is negative."
NO_SNAPSHOTS = "This model has no snapshots of its training; train one to see a circuit grow."
CURVES_EXPLAINED = (
    "In a circuit's pass, its edges carry the clean text and all others the corrupted one: 0 is "
    "the metric of the corrupted text, 1 that of the clean one. Faithfulness is the share that the "
    "circuit alone restores, completeness the share that all other edges restore. Random circuits "
    "have equally many edges; the chart shows their mean and range."
)
NO_HEAD_AT_EDGE = "Neither end of this edge is a head, so there is no attention map to show."


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
        st.markdown(f"**Strongest parts**, as {method} estimates them")
        scores_table("part", names, method, estimates, exact, spread, error=question.error)
    with left:
        values = [torch.nan if value is None else value for value in exact]
        grid = edge_grid(wiring, wiring.columns, values if is_exact else estimates).mT
        unit, pairs = UNITS[question.metric], len(question.pairs)
        over = f", the mean over {pairs} pairs" if pairs > 1 else ""
        lower = LOWER_IS_BETTER if question.metric in (LOSS, KL) else ""
        metric = metric_in_words(question.metric)
        heads_grid(
            context,
            grid,
            key="circuit_heads",
            title=map_title(context.called, at.part, f"Each head's part of the {metric}"),
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
        with expander("estimates"):
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
        chart(spec, height=SCATTER_HEIGHT, key="estimates", title=title)
    with numbers:
        parts = range(len(names))
        heads = [at for at in parts if kinds[at] == "head"]
        for what, some in (("all parts", parts), ("the heads", heads)):
            _say_correlation([estimates[at] for at in some], [exact[at] for at in some], what)
        furthest = "; ".join(
            f"{names[at]} ({three(estimates[at])} estimated, {three(exact[at])} exact)"
            for at in sorted(parts, key=lambda at: -abs(exact[at] - estimates[at]))[:NAMED]
        )
        st.text(f"Where the estimate is furthest from the exact value: {furthest}.")
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


def draw_edge_card(
    context: PageContext, question: Question, picture: CircuitMap, edge: Edge, title: str
) -> None:
    """The edge in a sentence or two, then the card of the head at one of its ends."""
    effect = effect_in_words(edge, question.metric, question.error)
    st.markdown(f"**{edge.title}**")
    st.markdown(f"{effect} {composition_in_words(context.opened, edge)}".strip())
    ends = {node.title: node for node in (edge.target, edge.source) if node.kind == "head"}
    if not ends:
        st.caption(NO_HEAD_AT_EDGE)
        return
    head = ends[one_of("card_of", tuple(ends)) if len(ends) > 1 else next(iter(ends))]
    cell, name = cell_of_edge(picture, edge, head), f"{title}: {edge.title}"
    draw_head_card(context, question, head.layer, head.head, *cell, name=name)


def effect_in_words(edge: Edge, metric: str, error: float = 0.0) -> str:
    """How much of the metric an edge carries; `error` is the numerical error of the exact value."""
    unit = f" {UNITS[metric]}" if UNITS[metric] else ""
    spread = "" if edge.spread is None else f" ± {three(edge.spread)}"
    exact = "" if edge.exact is None else f", {three(edge.exact, error)}{unit} by patching"
    return f"It carries {three(edge.estimate)}{spread}{unit} of the metric by estimate{exact}."


def composition_in_words(opened: OpenModel, edge: Edge) -> str:
    """The composition score of an edge between two heads; empty for any other edge."""
    if not (edge.source.kind == edge.target.kind == "head" and edge.reads in READS):
        return ""
    scores = composition_of(opened, edge.target.layer, edge.target.head)[READS.index(edge.reads)]
    score = float(scores[edge.source.layer, edge.source.head])
    place = int((scores > score).sum()) + 1
    times = three(score / unrelated(opened.config.d_model))
    return (
        f"By weights alone, {edge.reads.upper()}-composition of {edge.target.title} with "
        f"{edge.source.title} is {times} × that of unrelated heads, rank {place} of "
        f"{scores.numel():,} earlier heads."
    )


def draw_circuit(context: PageContext, question: Question, adjust: DeltaGenerator) -> None:
    """A picture and a table of the strongest edges, and the curves of circuits of every size."""
    opened = context.opened
    with adjust, st.container(horizontal=True, vertical_alignment="bottom"):
        method = choose_method(question)
        count = whole("patched_edges", width=180)
    if method is None:
        return
    scores = scores_of_question(opened, question, method)
    if scores is None:
        return
    if scores.edges is None:
        st.text(scores.why_no_edges)
        return
    count = min(count, len(scores.order))
    exact = exact_of_edges(opened, question, scores, method, count) or []
    edges = scores.strongest_edges(count, exact)
    parts = cached_exact_parts(opened, question, scores)
    picture = picture_of(opened, question, scores, method, exact, parts)
    texts = question.pairs[0].texts
    title = f"{opened.title}: the circuit between “{texts.clean}” and “{texts.corrupted}”"
    chosen = draw_circuit_map(f"{opened.title}: {question_in_words(question)}", picture)
    if chosen is not None:
        with st.container(border=True):
            if isinstance(chosen, Edge):
                draw_edge_card(context, question, picture, chosen, title)
            else:
                name = f"{title}: Head {chosen.title}"
                draw_head_card(context, question, chosen.layer, chosen.head, name=name)
    curves, edge_table = widgets.side_by_side(6, 5)
    with curves:
        st.markdown("**How much of the difference a circuit explains**")
        if curve := curve_of(opened, question, scores, method):
            points, smallest = curve
            spec = circuit_curves([vars(point) for point in points], smallest)
            title = "Share of the difference that circuits of every size restore"
            chart(spec, height=CURVES_HEIGHT, key="circuit_curves", title=title)
            st.text(smallest_in_words(smallest, points))
            st.caption(CURVES_EXPLAINED)
        if any(len(pair.clean) != len(pair.corrupted) for pair in question.pairs):
            st.caption(
                "Of texts of unequal length, only tokens with a partner carry the corrupted text: "
                "0 is the metric without any edge."
            )
    with edge_table:
        st.markdown(f"**Strongest edges**, as {method} estimates them")
        estimates, values = [edge.estimate for edge in edges], [edge.exact for edge in edges]
        spread, error = [edge.spread for edge in edges], question.error
        names, most = [edge.title for edge in edges], len(edges)
        scores_table("edge", names, method, estimates, values, spread, most=most, error=error)
        _say_correlation(estimates[: len(exact)], exact, f"these {len(exact)} edges")
    lines = script(circuit_code, opened, question, METHODS[method], count)
    code_panel(attribute, exact_edges, CorruptedPass.metrics, script=lines)


def _say_correlation(estimates: Sequence[float], exact: Sequence[float], what: str) -> None:
    r = correlation(estimates, exact)
    if r is not None:
        st.text(f"Pearson's r of estimate and exact value over {what}: {r:.3f}.")


def circuit_code(opened: OpenModel, question: Question, steps: int, count: int) -> None:
    scores = scores_of(opened, [*attributions(opened, question, steps)])
    strongest = scores.strongest(count)
    exact = torch.zeros(len(strongest))
    for at, lost in mean_over_pairs(opened, question, strongest):
        exact[at] += lost
    for place, value in zip(strongest, exact.tolist(), strict=True):
        print(scores.edge(*place, value))
    circuits = nested_circuits(opened, question, scores)
    points = [*circuits.curve()]
    print(*points, sep="\n")  # a circuit of each size
    print(circuits.smallest(points))  # edges for 90 %


def draw_over_training(context: PageContext, question: Question, adjust: DeltaGenerator) -> None:
    """The trained model's strongest edges over the steps, and the strongest edges of one step."""
    snapshots = snapshots_of(context)
    if not snapshots:
        draw_trained_here(context)
        return
    if why := why_not_over_training(question) or why_no_edges(context.opened):
        st.text(why)
        return
    with adjust:
        method = choose_method(question)
    if method is None:
        return
    opened, steps, passes = context.opened, [*snapshots], METHODS[method]

    def measure(at: int, _: Report) -> ScoresAtStep:
        snapshot = int(steps[at]), open_snapshot(opened, snapshots[steps[at]])
        return next(over_training(question, [snapshot], passes))

    history = measurements(
        opened,
        "over_training",
        [("circuit at a step", question.key, method, step) for step in steps],
        measure,
        cost=cost_of_passes(opened, question) * (1 + BACKWARD * passes) * len(steps),
        doing="Attribution, snapshot by snapshot",
        too_long=TOO_LONG_FOR_PAIRS,
    )
    if history is None:
        return
    curves, edge_table = widgets.side_by_side(6, 5)
    with edge_table:
        at = history[stepper("circuit_step", len(history), len(history) - 1, names=steps)]
        st.markdown(f"**Strongest edges at step {at.step:,}**")
        edges = at.scores.strongest_edges(STRONGEST)
        estimates = [edge.estimate for edge in edges]
        scores_table("edge", [edge.title for edge in edges], "estimate", estimates)
        clean, corrupted = (three(fmean(of)) for of in (at.scores.clean, at.scores.corrupted))
        st.text(f"Metric: {clean} for the clean text, {corrupted} for the corrupted one.")
    with curves:
        _draw_edges_over_training(history, at.step, question)
    measured = opened, question, context.folder, passes, STRONGEST
    code_panel(over_training, attribute, script=script(over_training_code, *measured))


def draw_trained_here(context: PageContext) -> None:
    """Buttons for the models with snapshots that have circuits, and a link to train one."""
    grown = {name: of for name, of in context.models.items() if choice.snapshots_of(of)}
    fitting = [name for name, of in grown.items() if of.config and not why_no_circuits(of.config)]
    with st.container(horizontal=True):
        for name in fitting:
            label, key = f"Open “{literal(grown[name].title)}”", f"circuit_of_{name}"
            open_it, is_first = partial(choose_model, name), name == fitting[0]
            st.button(label, key, on_click=open_it, type="primary" if is_first else "secondary")
        draw_page_link("training", "Train such a model", task="induction")


def _draw_edges_over_training(history: list[ScoresAtStep], step: int, question: Question) -> None:
    last = history[-1].scores
    rows = []
    for place in last.strongest(FOLLOWED):
        name = last.edge(*place).title
        for at in history:
            assert at.scores.edges is not None
            rows.append((at.step, name, float(at.scores.edges[place])))
    rows += [(at.step, "the whole difference", at.scores.difference) for at in history]
    spec = lines_over_steps(rows, "part of the metric", "edge", step)
    title = "Strongest edges over training"
    with st.container(key="over_training"):
        chart(spec, height=WINDOW, key="edges_over_steps", title=title)
    st.caption(
        f"The {FOLLOWED} strongest edges of the trained model, and how much of the metric "
        f"({metric_in_words(question.metric)}) each carries with the weights of every snapshot. "
        "Steps are on a logarithmic scale."
    )


def over_training_code(
    opened: OpenModel, question: Question, folder: Path, steps: int, count: int
) -> None:
    snapshots = Run(folder.parent).snapshots()
    models = ((step, open_folder(snapshot)) for step, snapshot in snapshots)
    for at in over_training(question, models, steps):
        print(at.step, at.scores.difference)
        for place in at.scores.strongest(count):
            print(at.scores.edge(*place))
