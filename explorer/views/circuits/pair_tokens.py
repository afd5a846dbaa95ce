"""A pair of texts on the Circuits page: its tokens one above another, and what they are told by."""

from statistics import fmean, stdev

import streamlit as st

from explorer.analysis.circuit_metrics import ANSWERS_READ, UNITS
from explorer.analysis.circuits.text_pairs import Question, TokenPair
from explorer.app import widget_state
from explorer.app.address_table import TEXT_LIMIT
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.components import chips
from explorer.text.labels import cut, readable
from explorer.text.number_format import three
from explorer.views.shared import widgets

LONGEST_PAIR_NAME = 80


def draw_pairs(context: PageContext, question: Question) -> None:
    """The tokens of one of them, the metric of its texts, and the means over all of them."""
    pair = question.pairs[0]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(question.pairs) > 1:
            pair = _choose(question)
        clean = pair.texts.clean
        if clean != context.choice.text and len(clean) <= TEXT_LIMIT:
            label = "Make its clean text the sentence of the bar"
            st.button(label, key="clean_to_bar", on_click=_take, args=(clean,))
    chips(pair.clean, key="pair_tokens", below=pair.corrupted, highlight=pair.differing)
    st.text(_values(question.metric, pair))
    widgets.notes(pair.notes)
    if len(question.pairs) > 1:
        st.text(_means(question))


def _choose(question: Question) -> TokenPair:
    names = _names(question)
    shown = one_of("pair_shown", names, as_list=True, width=520)
    return question.pairs[names.index(shown)]


def shown_pair(question: Question) -> TokenPair:
    """The pair on screen, for views that are drawn behind its tokens."""
    names, shown = _names(question), widget_state.get("pair_shown")
    return question.pairs[names.index(shown) if shown in names else 0]


def _names(question: Question) -> list[str]:
    return [
        f"{at + 1} · {cut(readable(pair.texts.clean).replace('␣', ' '), LONGEST_PAIR_NAME)}"
        for at, pair in enumerate(question.pairs)
    ]


def _take(clean: str) -> None:
    widget_state.put("text", clean)


def _values(metric: str, pair: TokenPair) -> str:
    """The metric of both texts and their difference, in a sentence."""
    of = {2: " of “{}” and “{}”", 1: " of “{}”", 0: ""}[ANSWERS_READ[metric]].format(*pair.names)
    clean, corrupted = pair.clean_value, pair.corrupted_value
    return (
        f"{metric}{of}: {three(clean)} after the clean text (above), {three(corrupted)} after the "
        f"corrupted one (below); the difference is {_in_units(metric, clean - corrupted)}."
    )


def _means(question: Question) -> str:
    clean, corrupted, both = (
        _mean_and_spread([value(pair) for pair in question.pairs])
        for value in (
            lambda pair: pair.clean_value,
            lambda pair: pair.corrupted_value,
            lambda pair: pair.clean_value - pair.corrupted_value,
        )
    )
    unit = UNITS[question.metric]
    return (
        f"Mean over {len(question.pairs)} pairs: {clean} after the clean texts, {corrupted} after "
        f"the corrupted ones; the difference is {both}{f' {unit}' if unit else ''} (± the standard "
        "deviation)."
    )


def _mean_and_spread(values: list[float]) -> str:
    return f"{three(fmean(values))} ± {three(stdev(values))}"


def _in_units(metric: str, value: float) -> str:
    return f"{three(value)} {UNITS[metric]}".strip()
