"""A finding on the Circuits page: what was measured as a file, and one opened again beside it."""

from hashlib import blake2b

import streamlit as st

from explorer.analysis.circuit_metrics import metric_in_words, metrics_of
from explorer.analysis.circuits.circuit_scores import METHODS, correlation
from explorer.analysis.circuits.finding import (
    CircuitMeasurement,
    Finding,
    FindingError,
    finding_from,
    finding_of,
    other_model,
)
from explorer.analysis.circuits.text_pairs import PairError, Question
from explorer.app import address
from explorer.app.context import PageContext
from explorer.app.controls import popover
from explorer.catalog.opened_model import OpenModel
from explorer.charts.figure_data import file_name
from explorer.inference.results_cache import kept
from explorer.system.limits import FINDING_BYTES, MB
from explorer.text.number_format import three
from explorer.views.circuits.question_scores import measured_by_now, scores_table

FINDING_FILE = "finding_file"


def open_finding(context: PageContext) -> Finding | None:
    """The finding in an uploaded file; None before there is one. PairError says why it is none."""
    file = st.file_uploader(
        "A finding, as this page or the command line wrote it",
        type=["json"],
        key=FINDING_FILE,
        max_upload_size=-(-FINDING_BYTES.most // MB),
        width=520,
        help="A link to this page does not hold the file.",
    )
    if file is None:
        return None
    try:
        if not FINDING_BYTES.allows(file.size):
            raise FindingError(FINDING_BYTES.refusal(file.size))
        finding = _read_once(context.opened, file.getvalue())
    except FindingError as error:
        raise PairError(str(error)) from error
    if finding.metric not in (known := metrics_of(context.opened.config)):
        raise PairError(
            f"The finding measures the {metric_in_words(finding.metric)}, which this model has not "
            f"({', '.join(map(metric_in_words, known))}): choose another model."
        )
    st.text(other_model(finding, context.opened) or "This finding is of these weights.")
    return finding


def _read_once(opened: OpenModel, data: bytes) -> Finding:
    """The finding in these bytes, which every run of the page is given anew."""

    def read() -> Finding | str:
        try:
            return finding_from(data)
        except FindingError as error:
            return str(error)

    finding = kept(opened, ("finding", blake2b(data).digest()), read)
    if isinstance(finding, str):
        raise FindingError(finding)
    return finding


def draw_finding(context: PageContext, question: Question, opened: Finding | None) -> None:
    """The panel at the end of the page."""
    if opened is not None:
        _draw_beside(context, question, opened)
    method = address.current_value("attributed_by")
    method = method if method in METHODS else next(iter(METHODS))
    with popover("finding", ":material/description:") as panel:
        if panel.open:
            _draw_download(context, question, method)


def _draw_download(context: PageContext, question: Question, method: str) -> None:
    measured = measured_by_now(context.opened, question, method)
    if measured is None:
        st.text(f"Nothing is estimated by {method} yet: the view Heads does it.")
        return
    st.caption(_contents(measured))
    finding = finding_of(context.opened, question, measured)
    st.download_button(
        "Download the finding",
        data=finding.to_json().encode(),
        file_name=f"{file_name(f'{finding.model} circuit')}.json",
        key="download_finding",
        on_click="ignore",
    )


def _contents(measured: CircuitMeasurement) -> str:
    """What is in the file, and which view measures what is not."""
    exact = sum(value is not None for value in measured.exact)
    said = [
        f"The pairs, the metric, and by {measured.method} the estimates of "
        f"{len(measured.exact):,} parts and the strongest edges.",
        f"Exact values of {exact:,} parts and {len(measured.exact_edges):,} edges."
        if exact or measured.exact_edges
        else "No exact values yet: the views Heads and Circuit measure them.",
    ]
    if not measured.points:
        said.append("No circuits of every size yet: the view Circuit runs them.")
    return " ".join(said)


def _draw_beside(context: PageContext, question: Question, finding: Finding) -> None:
    """What the file says, and what the chosen model says to the same question."""
    st.markdown("**The finding that was opened**")
    here = measured_by_now(context.opened, question, finding.method)
    if here is None:
        st.text(
            f"Let the view Heads estimate by {finding.method} to see the chosen model beside it."
        )
    estimates = {} if here is None else _estimates(here)
    heads = [(head.layer, head.head) for head in finding.heads]
    beside = [three(estimates[head]) if head in estimates else "" for head in heads]
    scores_table(
        "head",
        [f"{layer}.{head}" for layer, head in heads],
        finding.method,
        [head.estimate for head in finding.heads],
        exact=[head.exact for head in finding.heads],
        more={f"{finding.method} here": beside} if estimates else None,
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
            f"Edges that restore 90 % of the difference: {finding.minimum:,} of "
            f"{finding.edges_in_all:,} in the finding{now}."
        )


def _estimates(measured: CircuitMeasurement) -> dict[tuple[int, int], float]:
    """Of every head by its layer and number."""
    places = measured.scores.wiring.columns
    return {
        (place.layer, place.head): float(value)
        for place, value in zip(places, measured.scores.writers, strict=True)
        if place.kind == "head"
    }
