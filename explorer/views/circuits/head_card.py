"""The card of one head: its scores, its map, what it copies and with which heads it composes."""

from collections.abc import Iterable
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis.circuits.direct_head_effect import (
    clean_pass,
    composition_of,
    direct_effect,
    source_tokens,
)
from explorer.analysis.circuits.head_scores import (
    HeadScores,
    head_in_programs,
    head_scores,
    name_moving,
    standard_scores,
)
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
from explorer.analysis.head_programs import example_lines, programs_of, read_lines
from explorer.analysis.output_change import last_streams
from explorer.app.choosing import carried, choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of, token_names
from explorer.app.progress import bar
from explorer.catalog.attention_parts import head_title
from explorer.catalog.opened_model import OpenModel
from explorer.charts.figure_data import WINDOW
from explorer.charts.singular_value_chart import singular_value_curves
from explorer.components.chart import chart
from explorer.components.mounting import neighbour
from explorer.components.picker import cells
from explorer.inference.results_cache import cached
from explorer.text.number_format import signed, three
from explorer.text.token_labels import label_at, named_at, text_of
from explorer.text.visible_text import cut, in_quotes, literal
from explorer.views.attention.programs_view import words_and_cost
from explorer.views.attention.score_sources_view import HeadCell, why_in_words
from explorer.views.circuits.evidence import draw_searched_lines
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import code_panel, script
from explorer.views.shared.tables import static_table, table

LONGEST_SOURCE = 16
"""Characters of a token in the table."""
COMPOSITION_HEIGHT, CURVE_HEIGHT = 260, 190
NAMES, STRONGEST = tuple(map(str.upper, READS)), 3
FIRST_LAYER = "No layer comes before this one, so this head composes with none."
NO_TOKENS = "The output is a class, so there are no tokens that a head raises or lowers."


def draw_sources(opened: OpenModel, pair: TokenPair, layer: int, head: int) -> None:
    """The tokens that the head attends to most from the output position, and what each writes."""
    sources = source_tokens(opened, pair, layer, head)
    if not sources:
        st.caption(NO_TOKENS)
        return
    tokens = clean_pass(opened, pair).tokens
    st.markdown(f"**What it writes when it attends from {literal(named_at(tokens, pair.place))}**")
    table(
        {
            "attends to": [f"{of.place} · {label_at(tokens, of.place)}" for of in sources],
            "weight": [three(source.weight) for source in sources],
            "answer − against": [signed(source.to_answer) for source in sources],
            "raises most": [_in_words(opened, source.raised) for source in sources],
            "lowers most": [_in_words(opened, source.lowered) for source in sources],
        },
        right=("weight", "answer − against"),
    )
    st.caption(
        "W_U W_O v of each token, as if the whole weight were on it, in logits minus their mean "
        "over the vocabulary. v is the value in this pass, and the last norm is frozen at this "
        "position. Later layers, which may read what the head writes, are left out."
    )


def _in_words(opened: OpenModel, logits: Iterable[tuple[int, float]]) -> str:
    """Tokens and what is added to their logits."""
    label = opened.tokenizer.label
    return "   ".join(
        f"{cut(text_of(label(i)), LONGEST_SOURCE)} {signed(logit)}" for i, logit in logits
    )


def draw_composition(opened: OpenModel, layer: int, head: int) -> None:
    """A grid of the composition score with every earlier head; a click chooses a head."""
    st.markdown("**Composition with earlier heads**")
    if layer == 0:
        st.caption(FIRST_LAYER)
        return
    by_read = composition_of(opened, layer, head) / unrelated(opened.config.d_model)
    name = one_of("composed_by", NAMES, "K", label_visibility="collapsed")
    scores = by_read[NAMES.index(name)].mT
    cells(
        scores,
        *([str(number) for number in range(count)] for count in scores.shape),
        key="composition",
        title=f"{opened.title} · {name}-composition of layer {layer}, head {head} with every "
        "earlier head",
        selected=None,
        on_pick=lambda head, layer: choose_head(layer, head),
        row_name="head",
        column_name="layer",
        sentence="Layer {column}, head {row}: {value}",
        unit="× unrelated",
        height=COMPOSITION_HEIGHT,
    )
    strongest = (f"{name} {_strongest(of)}" for name, of in zip(NAMES, by_read, strict=True))
    st.caption(
        f"Strongest: {'; '.join(strongest)}. The score is ‖W_QKᵀ W_OV‖ / ‖W_QK‖ ‖W_OV‖ or its "
        "equivalent for K and V, in units of 1 / √d_model, the score of two unrelated heads. It "
        "follows from the weights alone: what the head could read."
    )


def _strongest(scores: Tensor) -> str:
    """The heads with the largest scores (layers, heads), such as 21.5 (1.61 ×)."""
    values, places = scores.flatten().topk(min(STRONGEST, scores.numel()))
    heads = scores.shape[1]
    return ", ".join(
        f"{place // heads}.{place % heads} ({three(value)} ×)"
        for value, place in zip(values.tolist(), places.tolist(), strict=True)
    )


def draw_head_view(context: PageContext, question: Question, adjust: DeltaGenerator) -> None:
    """The card of the head that the bar selects."""
    at, pair = context.choice, question.pairs[0]
    draw_head_card(context, question, at.layer, at.head)
    opened = context.opened
    lines = script(card_code, opened, pair.texts, question.metric, at.layer, at.head)
    if not why_no_copying(opened.config):
        lines += script(copying_code, opened, at.layer, at.head)
    code_panel(composition_scores, copying, script=lines)


def draw_head_card(
    context: PageContext, question: Question, layer: int, head: int, *cell: int, name: str = ""
) -> None:
    """The card of one head, on the clean text of the first pair; `cell` is a query and key."""
    opened, pair = context.opened, question.pairs[0]
    forward = clean_pass(opened, pair)
    part = f"{last_streams(opened.config)[0]}.self_attn"
    title = head_title(opened.title, part, layer, head)
    most = int(forward.weights(part, layer, head)[pair.place].argmax())
    at = HeadCell(part, layer, head, *cell or (pair.place, most))
    why = why_in_words(opened, forward, at)
    widgets.notes(filter(None, [why]))
    if name and why:  # also beside the picture in which this is chosen
        names = token_names(forward.rows(part))
        chosen = {"query": names[at.query], "key": names[at.key], "text": pair.texts.clean}
        link = {**carried(), "pair_view": "Why", "layer": layer, "head": head, **chosen}
        address = f"query_key?{urlencode(link, doseq=True)}"
        neighbour("circuit_map-why", [name, f"{layer}.{head}: {why}", address])
    scores = _measure_scores(opened, layer, head)
    attention_map, numbers = widgets.side_by_side(5, 6)
    with numbers:
        st.markdown(scores.names_in_words)
        if of := head_in_programs(opened, layer, head):
            lines = read_lines(opened, example_lines(opened))
            st.markdown(f"Programs: {words_and_cost(opened, lines, of)}.")
        _draw_scores(scores)
        effect = direct_effect(opened, pair, layer, head)
        answer, against = (in_quotes(literal(name)) for name in pair.names)
        st.markdown(
            f"Direct contribution: {signed(effect.to_answer)} to {answer}, "
            f"{signed(effect.to_against)} to {against}, so {signed(effect.difference)} to a logit "
            f"difference of {signed(effect.logit_difference)}."
        )
    with attention_map:
        widgets.draw_map(forward, part, layer, head, "card_map", title, WINDOW)
    draw_sources(opened, pair, layer, head)
    draw_searched_lines(opened, layer, head)
    reads, spectrum = widgets.side_by_side(4, 7)
    with reads:
        draw_composition(opened, layer, head)
    with spectrum:
        _draw_spectra(opened, layer, head)


def _measure_scores(opened: OpenModel, layer: int, head: int) -> HeadScores:
    """The first head of a model takes seconds, since all heads are measured together."""
    with bar("Scores on standard prompts") as report:
        for measure, done in ((standard_scores, 0.4), (name_moving, 0.6), (programs_of, 0.9)):
            measure(opened)
            report(done)
        return head_scores(opened, layer, head)


def _draw_scores(of_head: HeadScores) -> None:
    scores = of_head.scores
    ranks = [f"{of.place:,} of {of.heads:,}" if of.place else "" for of in scores]
    columns = {  # a space that does not break keeps a text on one line
        "score": [of.title.replace(" ", "\u00a0") for of in scores],
        "value": [three(of.value) for of in scores],
        "rank": [rank.replace(" ", "\u00a0") for rank in ranks],
        "what it is": [of.meaning for of in scores],
    }
    static_table(columns, "Scores of this head on standard prompts")
    st.caption(" ".join(of_head.notes))


def _draw_spectra(opened: OpenModel, layer: int, head: int) -> None:
    key = "head spectra", layer, head
    qk_and_ov = cached(opened, key, lambda: spectra(head_weights(opened.model, layer, head)))
    st.markdown("**Singular values**")
    for name, column, spectrum in zip(("QK", "OV"), st.columns(2), qk_and_ov, strict=True):
        with column:
            values, random = spectrum.values.tolist(), spectrum.random.tolist()
            spec = singular_value_curves(values, random)
            title = f"Singular values of the {name} circuit"
            chart(spec, height=CURVE_HEIGHT, key=f"spectrum_{name}", title=title)
            count = sum(value > random[0] for value in values)
            st.caption(f"{name}: {count} of {len(values)} above the random head's largest.")
    st.caption(
        "W_Qᵀ W_K and W_O W_V with the gains of their norms, beside the product of two random "
        "matrices of the same sizes and Frobenius norm. Biases, the scales of the norms and rotary "
        "positions are left out."
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
