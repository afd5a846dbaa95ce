"""The question of the Circuits page: its pairs, their tokens, answers and metric."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from statistics import fmean, stdev

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.circuit_metrics import ANSWERS_READ, UNITS, metric_in_words, metrics_of
from explorer.analysis.circuits.default_corruption import default_corruption
from explorer.analysis.circuits.finding import Finding, FindingError, finding_from, model_difference
from explorer.analysis.circuits.pair_table import COLUMNS, pairs_of_csv
from explorer.analysis.circuits.pair_templates import TEMPLATES, fitting_templates, make_pairs
from explorer.analysis.circuits.text_pairs import (
    PairError,
    Question,
    TextPair,
    TokenPair,
    question_from,
    token_pair,
    why_no_circuits,
)
from explorer.app import widget_state
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.app.choosing import choose_model, draw_page_link, show_on_arrival
from explorer.app.context import PageContext
from explorer.app.controls import follow, one_of, text_field, whole
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.catalog.opened_model import OpenModel
from explorer.components.chips import chips
from explorer.inference.results_cache import cached
from explorer.system.limits import FINDING_BYTES, MB, PAIRS, TABLE_BYTES
from explorer.text.number_format import three
from explorer.text.visible_text import cut, literal, readable
from explorer.views.shared import widgets

OWN, TABLE, FINDING = "Your two texts", "CSV", "A finding"
USUAL_COUNT, LONGEST_PAIR_NAME, LONGEST_IN_LINE = 5, 80, 24
EXAMPLE = "induction"
"""The shipped model whose example has a pair that two heads explain."""


def draw_question(
    context: PageContext, picture: DeltaGenerator, below: DeltaGenerator
) -> tuple[tuple[Question, Finding | None] | None, DeltaGenerator]:
    """The question with the finding it comes from, and the panel of the controls.

    Without a question `picture` says why. The tokens of the question stand `below`.
    """
    opened = context.opened
    with picture:
        widgets.notes(context.forward.notes)  # `forward` ends the page if it cannot read the text
    if why := why_no_circuits(opened.config):
        with picture:
            say(why)
            draw_way_out(context)
        return None, below
    needs_file = widget_state.get("pair_source") in (TABLE, FINDING)
    with below:
        tokens = st.container()
        adjust = st.expander("Adjust", icon=":material/tune:", expanded=needs_file)
    both = None
    try:
        with adjust:
            both = _ask(context)
    except PairError as error:
        with picture:
            say(str(error))
    if both is not None:
        with tokens:
            draw_pairs(context, both[0])
    return both, adjust


def draw_way_out(context: PageContext) -> None:
    """A button that opens a model with a pair of texts, and a link to what this model can do.

    A reader who comes to the page sees that model at once.
    """
    fitting = [
        entry
        for entry in context.models.values()
        if entry.config is not None and not why_no_circuits(entry.config)
    ]
    with st.container(horizontal=True, vertical_alignment="center"):
        if fitting:
            entry = min(fitting, key=lambda entry: entry.name != EXAMPLE)
            show_on_arrival(entry)
            label = f"Open “{literal(entry.title)}” ({literal(entry.short_name)})"
            args = (entry.name,)
            st.button(label, key="open_pair", type="primary", on_click=choose_model, args=args)
        draw_page_link("interventions")


def _ask(context: PageContext) -> tuple[Question, Finding | None] | None:
    """The question that the controls describe; None while a file is missing."""
    opened, finding = context.opened, None
    if context.choice.pair:
        st.text("This page ignores the second sentence: it compares two single texts.")
    templates = fitting_templates(opened) if PAIRS.most else ()
    source = one_of("pair_source", (OWN, *templates, TABLE, FINDING))
    if source == FINDING:
        finding = _open_finding(opened)
        if finding is None:
            return None
        if not PAIRS.allows(len(finding.pairs)):
            raise PairError(PAIRS.refusal(len(finding.pairs)))
        pairs: Mapping[str, TextPair] = _numbered(pair.texts for pair in finding.pairs)
        metric = finding.metric
    else:
        pairs, metric = _choose(context, source)
    if not pairs:
        return None
    token_pairs = with_bar(_token_pairs(opened, pairs, metric), len(pairs), "Reading the pairs")
    return question_from(tuple(token_pairs), metric), finding


def question_in_words(question: Question) -> str:
    """Both texts and what is measured of them, in a line."""
    pair, metric = shown_pair(question), question.metric
    clean, corrupted = (
        cut(readable(text), LONGEST_IN_LINE) for text in (pair.texts.clean, pair.texts.corrupted)
    )
    values = f"{three(pair.clean_value)} and {three(pair.corrupted_value)}"
    return f"“{clean}” against “{corrupted}”: {_metric_of(metric, pair)} {values}"


def _choose(context: PageContext, source: str) -> tuple[Mapping[str, TextPair], str]:
    """The pairs by their names in a refusal, and the metric."""
    if source == OWN:
        return _own(context)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if source == TABLE:
            return _table(context)
        count = whole("pair_count", 1, PAIRS.most, min(USUAL_COUNT, PAIRS.most), width=120)
        seed = whole("pair_seed", width=120)
        metric = _metric(context)
    of_template = make_pairs(context.opened, source, count, seed)
    st.caption(f"{TEMPLATES[source].about} {of_template.note}")
    return _numbered(of_template.pairs), metric


def _numbered(pairs: Iterable[TextPair]) -> Mapping[str, TextPair]:
    return {f"Pair {at}": pair for at, pair in enumerate(pairs, 1)}


def _own(context: PageContext) -> tuple[Mapping[str, TextPair], str]:
    clean = context.choice.text
    usual = default_corruption(context.opened, clean)[:TEXT_LIMIT]
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
    file = st.file_uploader(
        f"A table with the columns {', '.join(COLUMNS)}; answers may be left out",
        type=["csv"],
        key="pair_table",
        max_upload_size=-(-TABLE_BYTES.most // MB),
        width=520,
    )
    metric = _metric(context)
    if file is None:
        return {}, metric
    if not TABLE_BYTES.allows(file.size):
        raise PairError(TABLE_BYTES.refusal(file.size))
    return {f"Line {line}": pair for line, pair in pairs_of_csv(file.getvalue()).items()}, metric


def _open_finding(opened: OpenModel) -> Finding | None:
    """The finding in an uploaded file, None before there is one. PairError where it is invalid."""
    file = st.file_uploader(
        "A finding that this page or the command line wrote",
        type=["json"],
        key="finding_file",
        max_upload_size=-(-FINDING_BYTES.most // MB),
        width=520,
        help="A link to this page does not contain the file.",
    )
    if file is None:
        return None
    if not FINDING_BYTES.allows(file.size):
        raise PairError(FINDING_BYTES.refusal(file.size))
    data = file.getvalue()
    try:  # every run of the page gets the bytes again
        finding = cached(opened, ("finding", blake2b(data).digest()), lambda: finding_from(data))
    except FindingError as error:
        raise PairError(str(error)) from error
    metrics = metrics_of(opened.config)
    if finding.metric not in metrics:
        raise PairError(
            f"The finding measures the {metric_in_words(finding.metric)}, which this model does "
            f"not have ({', '.join(map(metric_in_words, metrics))}): choose another model."
        )
    st.text(model_difference(finding, opened) or "This finding is of these weights.")
    return finding


def _metric(context: PageContext) -> str:
    return one_of("outcome", metrics_of(context.opened.config))


def _token_pairs(
    opened: OpenModel, pairs: Mapping[str, TextPair], metric: str
) -> Iterator[TokenPair]:
    """The pairs one after another. PairError names the one that cannot be compared."""
    for name, pair in pairs.items():
        try:
            yield token_pair(opened, pair, metric)
        except PairError as error:
            raise PairError(
                f"{name} is not a valid pair. {error}" if name else str(error)
            ) from error


def draw_pairs(context: PageContext, question: Question) -> None:
    """The tokens of one pair, the metric of its texts, and the means over all pairs."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(question.pairs) > 1:
            one_of("pair_shown", _names(question), as_list=True, width=520)
        pair = shown_pair(question)
        clean = pair.texts.clean
        if clean != context.choice.text and len(clean) <= TEXT_LIMIT:
            label = "Make its clean text the sentence of the bar"
            st.button(label, key="clean_to_bar", on_click=widget_state.put, args=("text", clean))
    chips(pair.clean, key="pair_tokens", below=pair.counterparts, highlight=pair.differing_places)
    st.text(_values(question.metric, pair))
    widgets.notes(pair.notes)
    if len(question.pairs) > 1:
        st.text(_means(question))


def shown_pair(question: Question) -> TokenPair:
    """The pair whose tokens are on screen."""
    names, name = _names(question), widget_state.get("pair_shown")
    return question.pairs[names.index(name) if name in names else 0]


def _names(question: Question) -> list[str]:
    return [
        f"{at + 1} · {cut(readable(pair.texts.clean).replace('␣', ' '), LONGEST_PAIR_NAME)}"
        for at, pair in enumerate(question.pairs)
    ]


def _values(metric: str, pair: TokenPair) -> str:
    """The metric of both texts and their difference, in a sentence."""
    clean, corrupted = pair.clean_value, pair.corrupted_value
    difference = f"{three(clean - corrupted)} {UNITS[metric]}".strip()
    return (
        f"{_metric_of(metric, pair)}: {three(clean)} after the clean text (above), "
        f"{three(corrupted)} after the corrupted one (below); the difference is {difference}."
    )


def _metric_of(metric: str, pair: TokenPair) -> str:
    """The metric with the answers that it reads."""
    of = {2: " of “{}” and “{}”", 1: " of “{}”", 0: ""}[ANSWERS_READ[metric]]
    return f"{metric}{of.format(*pair.names)}"


def _means(question: Question) -> str:
    pairs, unit = question.pairs, UNITS[question.metric]
    clean = _mean_and_spread([pair.clean_value for pair in pairs])
    corrupted = _mean_and_spread([pair.corrupted_value for pair in pairs])
    difference = _mean_and_spread([pair.clean_value - pair.corrupted_value for pair in pairs])
    return (
        f"Mean over {len(pairs)} pairs: {clean} after the clean texts, {corrupted} after the "
        f"corrupted ones; the difference is {f'{difference} {unit}'.strip()} (± the standard "
        "deviation)."
    )


def _mean_and_spread(values: list[float]) -> str:
    return f"{three(fmean(values))} ± {three(stdev(values))}"
