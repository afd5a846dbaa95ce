"""The question of the Circuits page: where its pairs come from, their answers and the metric."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import streamlit as st

from explorer.analysis.circuit_metrics import ANSWERS_READ, metrics_of
from explorer.analysis.circuits.finding import Finding
from explorer.analysis.circuits.first_corruption import first_corruption
from explorer.analysis.circuits.pair_table import COLUMNS, pairs_of_csv
from explorer.analysis.circuits.pair_templates import TEMPLATES, fitting, make_pairs
from explorer.analysis.circuits.text_pairs import (
    PairError,
    Question,
    TextPair,
    TokenPair,
    question_from,
    token_pair,
    why_no_circuits,
)
from explorer.app.address_table import TEXT_LIMIT
from explorer.app.choosing import draw_page_link
from explorer.app.context import PageContext
from explorer.app.controls import follow, one_of, text_field, whole
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.catalog.open_model import OpenModel
from explorer.system.limits import MB, PAIRS, TABLE_BYTES
from explorer.views.circuits.finding_panel import open_finding
from explorer.views.circuits.pair_tokens import draw_pairs
from explorer.views.shared import widgets

OWN, TABLE, FINDING = "Your two texts", "CSV", "A finding"
USUAL_COUNT = 5


@dataclass(frozen=True, eq=False)
class Asked:
    """The question, and the finding that it was taken from where it was."""

    question: Question
    finding: Finding | None


def draw_question(context: PageContext) -> Asked | None:
    """What is asked; None, and a sentence, where it is no question."""
    opened = context.opened
    widgets.notes(context.forward.notes)  # where it cannot be read, the page ends with a way out
    if why := why_no_circuits(opened.config):
        say(why)
        if opened.config.kind == "encoder-decoder":
            draw_page_link("interventions")
        return None
    if context.choice.pair:
        st.text("The second sentence is not read here: circuits are of one text and another.")
    templates = fitting(opened) if PAIRS.most else ()
    source = one_of("pair_source", (OWN, *templates, TABLE, FINDING))
    finding = None
    try:
        if source == FINDING:
            finding = open_finding(context)
            if finding is None:
                return None
            pairs, metric = _found(finding)
        else:
            pairs, metric = _choose(context, source)
        if not pairs:
            return None
        read = _read(opened, pairs, metric)
        found = tuple(with_bar(read, len(pairs), "Reading the pairs"))
        question = question_from(found, metric)
    except PairError as error:
        say(str(error))
        return None
    draw_pairs(context, question)
    return Asked(question, finding)


def _choose(context: PageContext, source: str) -> tuple[Mapping[str, TextPair], str]:
    """The pairs by what a sentence about them calls them, and the metric."""
    if source == OWN:
        return _own(context)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if source == TABLE:
            return _table(context)
        count = whole("pair_count", 1, PAIRS.most, min(USUAL_COUNT, PAIRS.most), width=120)
        seed = whole("pair_seed", width=120)
        metric = _metric(context)
    made = make_pairs(context.opened, source, count, seed)
    st.caption(f"{TEMPLATES[source].about} {made.said}")
    return {f"Pair {at + 1}": pair for at, pair in enumerate(made.pairs)}, metric


def _own(context: PageContext) -> tuple[Mapping[str, TextPair], str]:
    clean = context.choice.text
    usual = first_corruption(context.opened, clean)[:TEXT_LIMIT]
    follow("corrupted", usual)
    corrupted = text_field("corrupted", usual)
    keys = "answer_token", "against_token"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        metric = _metric(context)
        answers = [
            text_field(key, width=150, placeholder="The likeliest")
            for key in keys[: ANSWERS_READ[metric]]
        ]
    return {"": TextPair(clean, corrupted, *answers)}, metric


def _table(context: PageContext) -> tuple[Mapping[str, TextPair], str]:
    largest = TABLE_BYTES.most
    file = st.file_uploader(
        f"A table with the columns {', '.join(COLUMNS)}; answers may be left out",
        type=["csv"],
        key="pair_table",
        max_upload_size=-(-largest // MB),
        width=520,
    )
    metric = _metric(context)
    if file is None:
        return {}, metric
    if not TABLE_BYTES.allows(file.size):
        raise PairError(TABLE_BYTES.refusal(file.size))
    pairs = pairs_of_csv(file.getvalue())
    return {f"Line {line}": pair for line, pair in pairs.items()}, metric


def _found(finding: Finding) -> tuple[Mapping[str, TextPair], str]:
    if not PAIRS.allows(len(finding.pairs)):
        raise PairError(PAIRS.refusal(len(finding.pairs)))
    return {f"Pair {at + 1}": pair.texts for at, pair in enumerate(finding.pairs)}, finding.metric


def _metric(context: PageContext) -> str:
    return one_of("outcome", metrics_of(context.opened.config))


def _read(opened: OpenModel, pairs: Mapping[str, TextPair], metric: str) -> Iterator[TokenPair]:
    """Pair by pair; the one that is none is named."""
    for name, pair in pairs.items():
        try:
            yield token_pair(opened, pair, metric)
        except PairError as error:
            raise PairError(f"{name} is no pair here. {error}" if name else str(error)) from error
