"""A finding on the Circuits page: a download of the measurements, beside those of a file."""

import streamlit as st

from explorer.analysis.circuits.circuit_scores import METHODS, correlation
from explorer.analysis.circuits.finding import CircuitMeasurement, Finding, finding_of
from explorer.analysis.circuits.text_pairs import Question
from explorer.app import address
from explorer.app.context import PageContext
from explorer.app.controls import popover
from explorer.charts.figure_data import file_name
from explorer.text.number_format import three
from explorer.views.circuits.question_scores import cached_measurement, scores_table


def draw_finding(context: PageContext, question: Question, opened: Finding | None) -> None:
    """The panel at the end of the page."""
    if opened is not None:
        _draw_comparison(context, question, opened)
    method = address.current_value("attributed_by")
    method = method if method in METHODS else next(iter(METHODS))
    with popover("finding", ":material/description:") as panel:
        if panel.open:
            _draw_download(context, question, method)


def _draw_download(context: PageContext, question: Question, method: str) -> None:
    measurement = cached_measurement(context.opened, question, method)
    if measurement is None:
        st.text(f"There are no estimates by {method} yet: the view Heads makes them.")
        return
    st.caption(_contents(measurement))
    finding = finding_of(context.opened, question, measurement)
    st.download_button(
        "Download the finding",
        data=finding.to_json().encode(),
        file_name=f"{file_name(f'{finding.model} circuit')}.json",
        key="download_finding",
        on_click="ignore",
    )


def _contents(measurement: CircuitMeasurement) -> str:
    """What the file contains, and which view measures what is missing."""
    exact = sum(value is not None for value in measurement.exact)
    sentences = [
        f"The pairs, the metric, and estimates by {measurement.method} of "
        f"{len(measurement.exact):,} parts and the strongest edges.",
        f"Exact values of {exact:,} parts and {len(measurement.exact_edges):,} edges."
        if exact or measurement.exact_edges
        else "No exact values yet: the views Heads and Circuit measure them.",
    ]
    if not measurement.points:
        sentences.append("No circuits of every size yet: the view Circuit runs them.")
    return " ".join(sentences)


def _draw_comparison(context: PageContext, question: Question, finding: Finding) -> None:
    """The measurements in the file beside those of the chosen model for the same question."""
    st.markdown("**The finding that was opened**")
    here = cached_measurement(context.opened, question, finding.method)
    estimates: dict[tuple[int, int], float] = {}
    if here is None:
        st.text(f"Open the view Heads with {finding.method} to see the chosen model beside it.")
    else:
        places = zip(here.scores.wiring.columns, here.scores.writers.tolist(), strict=True)
        estimates = {(at.layer, at.head): value for at, value in places if at.kind == "head"}
    heads = [(head.layer, head.head) for head in finding.heads]
    here_values = [three(estimates[head]) if head in estimates else "" for head in heads]
    scores_table(
        "head",
        [f"{layer}.{head}" for layer, head in heads],
        finding.method,
        [head.estimate for head in finding.heads],
        exact=[head.exact for head in finding.heads],
        more={f"{finding.method} here": here_values} if estimates else None,
    )
    both = [
        (result.estimate, estimates[head])
        for result, head in zip(finding.heads, heads, strict=True)
        if head in estimates
    ]
    if (r := correlation([old for old, _ in both], [new for _, new in both])) is not None:
        st.text(f"Pearson's r of the estimates of {len(both)} heads, there and here: {three(r)}.")
    if finding.minimum is not None:
        now = "" if here is None or here.smallest is None else f", here {here.smallest:,}"
        st.text(
            "Edges of the smallest circuit tried that restores 90 % of the difference: "
            f"{finding.minimum:,} of {finding.edges_in_all:,} in the finding{now}."
        )
