"""The card of one head: its scores, its map, what it copies and with which heads it composes.

`draw_head_card` draws it for any head, such as that of an edge that was clicked.
"""

from collections.abc import Iterable

import streamlit as st
from torch import Tensor

from explorer.analysis.circuits.direct_head_effect import (
    clean_pass,
    composition_of,
    direct_effect,
    source_tokens,
)
from explorer.analysis.circuits.head_scores import HeadScores, head_scores, standard_scores
from explorer.analysis.circuits.text_pairs import Question, TextPair, TokenPair, token_pair
from explorer.analysis.head_circuits import (
    READS,
    composition,
    composition_scores,
    copying,
    head_weights,
    spectra,
    unrelated,
    why_no_copying,
)
from explorer.analysis.name_moving import name_moving
from explorer.analysis.output_change import last_streams
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.progress import bar
from explorer.catalog.attention_parts import head_title
from explorer.catalog.opened_model import OpenModel
from explorer.charts.singular_value_chart import singular_value_curves
from explorer.components.chart import chart
from explorer.components.picker import cells
from explorer.inference.results_cache import kept
from explorer.text.number_format import signed, three
from explorer.text.token_labels import label_at, named_at, text_of
from explorer.text.visible_text import cut, literal
from explorer.views.circuits.evidence import draw_known_lines
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import code_panel, script
from explorer.views.shared.tables import static_table, table

LONGEST_SOURCE = 16
"""Characters of a token in the table."""
MAP_HEIGHT, COMPOSITION_HEIGHT, CURVE_HEIGHT = 380, 260, 190
NAMES, STRONGEST = tuple(each.upper() for each in READS), 3
FIRST_LAYER = "No layer comes before this one, so this head composes with none."
NO_TOKENS = "The output is a class, so there are no tokens that a head raises or lowers."


def draw_direct_effect(opened: OpenModel, pair: TokenPair, layer: int, head: int) -> None:
    """What it adds directly to the logits of both answers, past no later block."""
    found = direct_effect(opened, pair, layer, head)
    answer, against = (literal(each) for each in pair.names)
    st.markdown(
        f"Direct contribution: {signed(found.to_answer)} to “{answer}”, "
        f"{signed(found.to_against)} to “{against}”, so {signed(found.difference)} to a logit "
        f"difference of {signed(found.logit_difference)}."
    )


def draw_sources(opened: OpenModel, pair: TokenPair, layer: int, head: int) -> None:
    """The tokens that it attends to most from the place that is read, and what each writes."""
    rows, tokens = source_tokens(opened, pair, layer, head), clean_pass(opened, pair).tokens
    if not rows:
        st.caption(NO_TOKENS)
        return
    st.markdown(f"**What it writes when it attends from {literal(named_at(tokens, pair.place))}**")
    table(
        {
            "attends to": [f"{each.place} · {label_at(tokens, each.place)}" for each in rows],
            "weight": [three(each.weight) for each in rows],
            "answer − against": [signed(each.to_answer) for each in rows],
            "raises most": [_tokens(opened, each.raised) for each in rows],
            "lowers most": [_tokens(opened, each.lowered) for each in rows],
        },
        right=("weight", "answer − against"),
    )
    st.caption(
        "W_U W_O v of each token, as if the whole weight were on it, in logits less their mean "
        "over the vocabulary. v is the value in this pass; the last norm is frozen at this place; "
        "later layers, which may read it too, are left out."
    )


def _tokens(opened: OpenModel, found: Iterable[tuple[int, float]]) -> str:
    labels = (
        (cut(text_of(opened.tokenizer.label(i)), LONGEST_SOURCE), value) for i, value in found
    )
    return "   ".join(f"{label} {signed(value)}" for label, value in labels)


def draw_composition(opened: OpenModel, layer: int, head: int) -> None:
    """Every earlier head by one of its three scores; a click chooses one."""
    st.markdown("**Composition with earlier heads**")
    if layer == 0:
        st.caption(FIRST_LAYER)
        return
    by_read = composition_of(opened, layer, head) / unrelated(opened.config.d_model)
    said = one_of("composed_by", NAMES, "K", label_visibility="collapsed")
    shown = by_read[NAMES.index(said)]
    cells(
        shown.mT,
        *([str(number) for number in range(count)] for count in shown.mT.shape),
        key="composition",
        title=f"{said}-composition of layer {layer}, head {head} with every earlier head",
        selected=None,
        on_pick=lambda head, layer: choose_head(layer, head),
        row_name="head",
        column_name="layer",
        sentence="Layer {column}, head {row}: {value}",
        unit="× unrelated",
        height=COMPOSITION_HEIGHT,
    )
    strongest = (f"{NAMES[at]} {_strongest(each)}" for at, each in enumerate(by_read))
    st.caption(
        f"Strongest: {'; '.join(strongest)}. ‖W_QKᵀ W_OV‖ / ‖W_QK‖ ‖W_OV‖ and its like, in units "
        "of 1 / √d_model, that of two unrelated heads: by weights alone, so what could be read."
    )


def _strongest(scores: Tensor) -> str:
    """The heads with the largest scores (layers, heads), such as 21.5 (1.61 ×)."""
    values, places = scores.flatten().topk(min(STRONGEST, scores.numel()))
    heads = scores.shape[1]
    return ", ".join(
        f"{place // heads}.{place % heads} ({three(value)} ×)"
        for value, place in zip(values.tolist(), places.tolist(), strict=True)
    )


def draw_head_view(context: PageContext, question: Question) -> None:
    """The card of the head that is chosen in the bar."""
    at, pair = context.choice, question.pairs[0]
    draw_head_card(context, question, at.layer, at.head)
    opened = context.opened
    lines = script(card_code, opened, pair.texts, question.metric, at.layer, at.head)
    if not why_no_copying(opened.config):
        lines += script(copying_code, opened, at.layer, at.head)
    code_panel(composition_scores, copying, script=lines)


def draw_head_card(context: PageContext, question: Question, layer: int, head: int) -> None:
    """The card of one head of the chosen model, over the clean text of the first pair."""
    opened, pair = context.opened, question.pairs[0]
    forward = clean_pass(opened, pair)
    part = f"{last_streams(opened.config)[0]}.self_attn"
    title = head_title(opened.name, part, layer, head)
    found = _scored(opened, layer, head)
    st.markdown(widgets.bold_title(title))
    st.markdown(found.named)
    numbers, drawn = widgets.side_by_side(7, 5)
    with numbers:
        _draw_scores(found)
        draw_direct_effect(opened, pair, layer, head)
    with drawn:
        widgets.draw_map(forward, part, layer, head, "card_map", title, MAP_HEIGHT)
    draw_sources(opened, pair, layer, head)
    draw_known_lines(opened, layer, head)
    reads, spectrum = widgets.side_by_side(4, 7)
    with reads:
        draw_composition(opened, layer, head)
    with spectrum:
        _draw_spectra(opened, layer, head)


def _scored(opened: OpenModel, layer: int, head: int) -> HeadScores:
    """The first head of a model takes seconds, all others are quick."""
    with bar("Scores on standard prompts") as report:
        standard_scores(opened)
        report(0.4)
        name_moving(opened)
        report(0.9)
        return head_scores(opened, layer, head)


def _draw_scores(found: HeadScores) -> None:
    scores = found.scores
    static_table(
        {
            "score": [_unbroken(each.title) for each in scores],
            "value": [three(each.value) for each in scores],
            "rank": [
                _unbroken(f"{each.place:,} of {each.heads:,}") if each.place else ""
                for each in scores
            ],
            "what it is": [each.meaning for each in scores],
        },
        "Scores of this head on standard prompts",
    )
    st.caption(" ".join(found.measured_on))


def _unbroken(text: str) -> str:
    """In one line of a table."""
    return text.replace(" ", "\u00a0")


def _draw_spectra(opened: OpenModel, layer: int, head: int) -> None:
    found = kept(
        opened,
        ("head spectra", layer, head),
        lambda: spectra(head_weights(opened.model, layer, head)),
    )
    st.markdown("**Singular values**")
    columns = st.columns(2)
    for name, column, spectrum in zip(("QK", "OV"), columns, found, strict=True):
        with column:
            values, random = spectrum.values.tolist(), spectrum.random.tolist()
            spec = singular_value_curves(values, random, random[0])
            title = f"Singular values of the {name} circuit"
            chart(spec, height=CURVE_HEIGHT, key=f"spectrum_{name}", title=title)
            above = f"{spectrum.above_random} of {len(values)} above the random head's largest"
            st.caption(f"{name}: {above}.")
    st.caption(
        "W_Qᵀ W_K and W_O W_V with the gains of their norms, beside the product of two random "
        "matrices of the same sizes and Frobenius norm. Left out: biases, the scale of the norms, "
        "and positions that turn queries and keys."
    )


def card_code(opened: OpenModel, texts: TextPair, metric: str, layer: int, head: int) -> None:
    scores = {name: float(of[layer, head]) for name, of in standard_scores(opened).items()}
    print(scores, name_moving(opened))
    pair = token_pair(opened, texts, metric)
    effect = direct_effect(opened, pair, layer, head)
    sources = source_tokens(opened, pair, layer, head)
    print(effect, *sources, sep="\n")
    composed = composition(opened.model, layer, head) / unrelated(opened.config.d_model)
    print(composed)  # by q, k and v with every earlier head
    qk, ov = spectra(head_weights(opened.model, layer, head))
    print(qk.values, ov.values)


def copying_code(opened: OpenModel, layer: int, head: int) -> None:
    copied = copying(opened.model, layer, head)
    print(copied.score, copied.own_in_top)
