"""A finding on the Circuits page: what was measured as a file, and one opened again beside it."""

from hashlib import blake2b

import streamlit as st

from explorer.analysis.circuits.finding import (
    Finding,
    FindingError,
    Measured,
    finding_from,
    finding_of,
    other_model,
)
from explorer.analysis.circuits.measure import METHODS, correlation
from explorer.analysis.circuits.outcome import metric_in_words, metrics_of
from explorer.analysis.circuits.text_pairs import PairError, Question
from explorer.app import url
from explorer.app.context import PageContext
from explorer.app.controls import popover
from explorer.catalog.open_model import OpenModel
from explorer.charts.figure_data import file_name
from explorer.inference.results_cache import kept, size_of
from explorer.system.limits import FINDING_BYTES, MB
from explorer.text.number_format import three
from explorer.views.circuits.measured import measured_by_now

LISTED = 10
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

    found = kept(opened, ("finding", blake2b(data).digest()), read, size_of)
    if isinstance(found, str):
        raise FindingError(found)
    return found


def draw_finding(context: PageContext, question: Question, opened: Finding | None) -> None:
    """The panel at the end of the page."""
    if opened is not None:
        _draw_beside(context, question, opened)
    method = url.current_value("attributed_by")
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


def _contents(measured: Measured) -> str:
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
    order = sorted(finding.heads, key=lambda head: -abs(head.estimate))
    strongest = order[:LISTED]
    table = {
        "head": [f"{each.layer}.{each.head}" for each in strongest],
        finding.method: [three(each.estimate) for each in strongest],
        "exact": ["" if each.exact is None else three(each.exact) for each in strongest],
    }
    if estimates:
        table[f"{finding.method} here"] = [
            "" if (value := estimates.get((each.layer, each.head))) is None else three(value)
            for each in strongest
        ]
    right = st.column_config.TextColumn(alignment="right")
    st.dataframe(table, hide_index=True, column_config=dict.fromkeys([*table][1:], right))
    both = [
        (each.estimate, estimates[each.layer, each.head])
        for each in finding.heads
        if (each.layer, each.head) in estimates
    ]
    if (r := correlation([old for old, _ in both], [new for _, new in both])) is not None:
        st.text(f"Pearson's r of the estimates of {len(both)} heads, there and here: {three(r)}.")
    if finding.minimum is not None:
        now = "" if here is None or here.smallest is None else f", here {here.smallest:,}"
        st.text(
            f"Edges that restore 90 % of the difference: {finding.minimum:,} of "
            f"{finding.edges_in_all:,} in the finding{now}."
        )


def _estimates(measured: Measured) -> dict[tuple[int, int], float]:
    """Of every head by its layer and number."""
    places = measured.scores.wiring.columns
    return {
        (place.layer, place.head): float(value)
        for place, value in zip(places, measured.scores.writers, strict=True)
        if place.kind == "head"
    }
