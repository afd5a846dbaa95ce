"""The circuit over training: its strongest edges with the weights of every snapshot."""

from pathlib import Path

import streamlit as st

from explorer.analysis.attribution_patching import attribute
from explorer.analysis.circuits.measure import (
    METHODS,
    ScoresAtStep,
    over_training,
    why_no_edges,
    why_not_over_training,
)
from explorer.analysis.circuits.outcome import metric_in_words
from explorer.analysis.circuits.text_pairs import Question
from explorer.app.context import PageContext
from explorer.catalog.open_model import OpenModel
from explorer.charts.training_curves import lines_over_steps
from explorer.components.chart import chart
from explorer.runs.open_run import open_folder
from explorer.runs.run import Run
from explorer.text.number_format import three
from explorer.views.circuits.measured import (
    BACKWARD,
    TOO_LONG_FOR_PAIRS,
    choose_method,
    cost_of_passes,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import code_panel, script
from explorer.views.shared.measurement import measurements
from explorer.views.shared.step_slider import stepper
from explorer.views.shared.training_snapshots import Snapshots, open_snapshot, snapshots_of

FOLLOWED, LISTED = 6, 10
OVER_TRAINING_HEIGHT = 320


def draw_over_training(context: PageContext, question: Question) -> None:
    """Lines of the trained model's strongest edges over the steps, and those of one step."""
    snapshots = snapshots_of(context)
    if not snapshots:
        st.text(
            "This model has no snapshots of its training: choose one that was trained here, or "
            "train one on the page Training."
        )
        return
    if why := why_not_over_training(question):
        st.text(why)
        return
    method = choose_method(question)
    if method is None:
        return
    if why := why_no_edges(context.opened):
        st.text(why)
        return
    found = _measure(context.opened, question, snapshots, method)
    if found is None:
        return
    curves, one_step = widgets.side_by_side(6, 5)
    with one_step:
        at = stepper("circuit_step", len(found), len(found) - 1, names=[*snapshots])
        _draw_step(found[at])
    with curves:
        _draw_curves(found, found[at].step, question)
    asked = context.opened, question, context.folder, METHODS[method], LISTED
    lines = script(over_training_code, *asked)
    code_panel(over_training, attribute, script=lines)


def _measure(
    opened: OpenModel, question: Question, snapshots: Snapshots, method: str
) -> list[ScoresAtStep] | None:
    steps = [*snapshots]

    def measure(at: int) -> ScoresAtStep:
        model = int(steps[at]), open_snapshot(opened, snapshots[steps[at]])
        (found,) = over_training(question, [model], METHODS[method])
        return found

    return measurements(
        opened,
        "over_training",
        [("circuit at a step", question.key, method, step) for step in steps],
        measure,
        lambda made: made.scores.nbytes,
        cost=cost_of_passes(opened, question) * (1 + BACKWARD * METHODS[method]) * len(steps),
        doing="Attribution, snapshot by snapshot",
        too_long=TOO_LONG_FOR_PAIRS,
    )


def _draw_curves(found: list[ScoresAtStep], shown: int, question: Question) -> None:
    last = found[-1].scores
    rows = []
    for place in last.strongest(FOLLOWED):
        name = last.edge(*place).title
        for each in found:
            assert each.scores.edges is not None
            rows.append((each.step, name, float(each.scores.edges[place])))
    rows += [(each.step, "the whole difference", each.scores.difference) for each in found]
    drawn = lines_over_steps(rows, "part of the metric", "edge", shown)
    title = "Strongest edges over training"
    with st.container(key="over_training"):
        st.markdown(f"**{title}**")
        chart(drawn, height=OVER_TRAINING_HEIGHT, key="edges_over_steps", title=title)
    st.caption(
        f"The {FOLLOWED} strongest edges of the trained model, and how much of the metric "
        f"({metric_in_words(question.metric)}) each carries with the weights of every snapshot. "
        "Steps are on a logarithmic scale."
    )


def _draw_step(at: ScoresAtStep) -> None:
    st.markdown(f"**Strongest edges at step {at.step:,}**")
    edges = [at.scores.edge(*place) for place in at.scores.strongest(LISTED)]
    st.dataframe(
        {
            "edge": [edge.title for edge in edges],
            "estimate": [three(edge.estimate) for edge in edges],
        },
        hide_index=True,
        column_config={"estimate": st.column_config.TextColumn(alignment="right")},
    )
    clean, corrupted = (sum(all_) / len(all_) for all_ in (at.scores.clean, at.scores.corrupted))
    st.text(f"Metric: {three(clean)} for the clean text, {three(corrupted)} for the corrupted one.")


def over_training_code(
    opened: OpenModel, question: Question, folder: Path, steps: int, count: int
) -> None:
    snapshots = Run(folder.parent).snapshots()
    models = ((step, open_folder(snapshot)) for step, snapshot in snapshots)
    for each in over_training(question, models, steps):
        print(each.step, each.scores.difference)
        for place in each.scores.strongest(count):
            print(each.scores.edge(*place))
