"""The question of the Circuits page: its pairs, their tokens, answers and metric."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from hashlib import blake2b
from itertools import pairwise
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
from explorer.system.limits import FINDING_BYTES, MB, PAIRS, TABLE_BYTES, Limit
from explorer.text.number_format import three
from explorer.text.visible_text import cut, in_quotes, literal, literal_sentence, readable
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
    every = context.models.values()
    fitting = [entry for entry in every if entry.config and not why_no_circuits(entry.config)]
    with st.container(horizontal=True, vertical_alignment="center"):
        if fitting:
            entry = min(fitting, key=lambda entry: entry.name != EXAMPLE)
            show_on_arrival(entry, context.title)
            label = f"Open “{literal(entry.title)}”"
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
        PAIRS.check(len(finding.pairs), PairError)
        pairs: Mapping[str, TextPair] = _numbered(pair.texts for pair in finding.pairs)
        metric = finding.metric
    else:
        pairs, metric = _choose(context, source)
    if not pairs:
        return None
    token_pairs = with_bar(_token_pairs(opened, pairs, metric), len(pairs), "Reading the pairs")
    return question_from(tuple(token_pairs), metric), finding


def question_in_words(question: Question) -> str:
    """Both texts, from just before their first difference, and what is measured, as Markdown."""
    pair, metric = shown_pair(question), question.metric
    texts = [readable(text) for text in (pair.texts.clean, pair.texts.corrupted)]
    alike = (one == other for one, other in zip(*texts, strict=False))
    start = max(0, next((at for at, same in enumerate(alike) if not same), 0) - 4)
    if max(map(len, texts)) > LONGEST_IN_LINE and start:
        texts = [f"…{text[start:]}" for text in texts]
    one, other = (cut(text, LONGEST_IN_LINE) for text in texts)
    changes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    if len(one) == len(other):  # letter by letter, as the tokens are compared
        pairs = enumerate(zip(one, other, strict=True))
        changes = [("equal" if a == b else "replace", n, n + 1, n, n + 1) for n, (a, b) in pairs]
    clean = "".join(_marked(one[a:b], what) for what, a, b, *_ in changes)
    corrupted = "".join(_marked(other[a:b], what) for what, *_, a, b in changes)
    first, second = three(pair.clean_value), three(pair.corrupted_value)
    what = literal_sentence(_metric_of(metric, pair))
    change = f"“{clean}” becomes “{corrupted}”" + _successors(pair)
    return f"{change}. {what}: from {first} to {second}."


def _successors(pair: TokenPair) -> str:
    """What follows the earlier copies of the last token, where that is what the texts change."""
    last, other = pair.clean[-1], pair.corrupted[-1]
    after, instead = (
        {following.label for at, following in pairwise(tokens) if at.id == last.id}
        for tokens in (pair.clean, pair.corrupted)
    )
    if last.id != other.id or not len(after) == len(instead) == 1 or after == instead:
        return ""
    end, one, two = (literal(in_quotes(label)) for label in (last.label, *after, *instead))
    return f": after {end} came {one}, now comes {two}"


def _marked(text: str, what: str) -> str:
    return literal(text) if what == "equal" or not text else f":orange[**{literal(text)}**]"


def _choose(context: PageContext, source: str) -> tuple[Mapping[str, TextPair], str]:
    """The pairs by their names in a refusal, and the metric."""
    if source == OWN:
        return _own(context)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if source == TABLE:
            about = f"A table with the columns {', '.join(COLUMNS)}; answers may be left out"
            data, metric = _uploaded(about, "csv", "pair_table", TABLE_BYTES), _metric(context)
            lines = {} if data is None else pairs_of_csv(data)
            return {f"Line {line}": pair for line, pair in lines.items()}, metric
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


def _uploaded(about: str, kind: str, key: str, limit: Limit) -> bytes | None:
    """The content of a file, None before there is one. PairError where it is too large."""
    file = st.file_uploader(
        about,
        type=[kind],
        key=key,
        max_upload_size=-(-limit.most // MB),
        width=520,
        help="A link to this page does not contain the file.",
    )
    if file is not None and not limit.allows(file.size):
        raise PairError(limit.refusal(file.size))
    return None if file is None else file.getvalue()


def _open_finding(opened: OpenModel) -> Finding | None:
    """The finding in an uploaded file, None before there is one. PairError where it is invalid."""
    about = "A finding that this page or the command line wrote"
    data = _uploaded(about, "json", "finding_file", FINDING_BYTES)
    if data is None:
        return None
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
            start = f"{name} is not a valid pair. " if name else ""
            raise PairError(f"{start}{error}") from error


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
    of, pairs, unit = _metric_of(question.metric, pair), question.pairs, UNITS[question.metric]
    values = [(p.clean_value, p.corrupted_value, p.clean_value - p.corrupted_value) for p in pairs]
    clean_value, corrupted, difference = map(three, values[pairs.index(pair)])
    st.text(
        f"{of}: {clean_value} after the clean text (above), {corrupted} after the corrupted one "
        f"(below); the difference is {f'{difference} {unit}'.strip()}."
    )
    widgets.notes(pair.notes)
    if len(pairs) > 1:
        by_text = zip(*values, strict=True)
        means = (f"{three(fmean(of_text))} ± {three(stdev(of_text))}" for of_text in by_text)
        clean_value, corrupted, difference = means
        st.text(
            f"Mean over {len(pairs)} pairs: {clean_value} after the clean texts, {corrupted} after "
            f"the corrupted ones; the difference is {f'{difference} {unit}'.strip()} (± the "
            "standard deviation)."
        )


def shown_pair(question: Question) -> TokenPair:
    """The pair whose tokens are on screen."""
    names, name = _names(question), widget_state.get("pair_shown")
    return question.pairs[names.index(name) if name in names else 0]


def _names(question: Question) -> list[str]:
    return [
        f"{at + 1} · {cut(readable(pair.texts.clean).replace('␣', ' '), LONGEST_PAIR_NAME)}"
        for at, pair in enumerate(question.pairs)
    ]


def _metric_of(metric: str, pair: TokenPair) -> str:
    """The metric with the answers that it reads."""
    words = {2: "Score (logit) of “{}” minus “{}”", 1: f"{metric} of “{{}}”", 0: metric}
    return words[ANSWERS_READ[metric]].format(*pair.names)
