"""Query and key: the chosen pair of tokens, their product, the steps to the weight, distances."""

import math
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis.query_key import (
    DistanceCurve,
    QueryKeyPair,
    by_distance,
    query_key_pair,
    strongest,
    strongest_cell,
)
from explorer.analysis.residual_writes import KeyContribution, key_contribution
from explorer.app import address, widget_state
from explorer.app.context import PageContext
from explorer.app.controls import one_of, option_of, token, token_names
from explorer.catalog.attention_parts import site
from explorer.charts.bars import dimension_bars
from explorer.charts.position_curves import distance_curve
from explorer.components.chart import chart
from explorer.components.mounting import chart_stage
from explorer.inference.forward_pass import ForwardPass
from explorer.text.number_format import three, weight_text
from explorer.text.token_labels import label_at
from explorer.text.visible_text import in_quotes
from explorer.views.attention.score_sources_view import draw_sources
from explorer.views.shared import pass_position, pinned, tables, widgets
from explorer.views.shared.edit_history import AFTER, BEFORE, draw_active
from explorer.views.shared.pinned import PinnedCell
from models import TransformerConfig

PRODUCTS, VALUE, DISTANCES, SOURCES, TABLE = "Products", "Value", "Distances", "Why", "Table"
VIEWS = {
    PRODUCTS: "The query (what a token looks for) times the key (what one offers): every product.",
    VALUE: "What the key passes on (its value), times its weight, together with that of all keys.",
    DISTANCES: "How well the same two tokens would match if they stood nearer or farther apart.",
    SOURCES: "Where the score, the match of query and key, comes from: each bar is one source.",
    TABLE: "The score, the match of query and key, by source: the query's down, the key's across.",
}
"""Each view, and what one sees in it."""
WHY = SOURCES, TABLE
SCORE_WITH_BIAS = "score + position bias"
BY_DIMENSION, BY_SIZE = "By dimension", "By size of the product"
DISTANCE_HEIGHT, MOST_OFFERED = 260, 3
KEYS_IN_SIGHT = 15
LIST = {"width": 190}
WITHOUT_LABEL = {"label_visibility": "collapsed"}


def has_distances(config: TransformerConfig) -> bool:
    """Whether positions act on the scores, by the distance of query and key."""
    return config.positions not in ("none", "sinusoidal", "learned")


def with_distances(context: PageContext) -> PageContext:
    """The context; in cross-attention that of the decoder's self-attention, and a sentence."""
    if not has_distances(context.forward.config):
        return context
    parts = [part for part in context.forward.parts if part.name != "decoder.cross_attn"]
    return widgets.shown_part(context, parts[::-1], "cross-attention has no distances")


def draw_query_key(context: PageContext) -> tuple[QueryKeyPair, str, ForwardPass]:
    """Draw the page for the chosen head; returns the chosen tokens, the view and its pass."""
    at, forward, words = context.choice, context.forward, context.part.words
    here = at.place
    rows, columns = forward.rows(at.part), forward.columns(at.part)
    first = strongest_cell(forward, *here)
    if option_of("pair_view", list(VIEWS)) == VALUE:  # of a weight of 1 all its pictures are alike
        largest = forward.weights(*here).nan_to_num().amax(-1)
        first = (mixed := int((largest - 0.5).abs().argmin())), strongest(forward, *here, mixed)
    controls = st.container(horizontal=True, vertical_alignment="center", key="pair_controls")
    with controls:
        query = token("query", rows, first[0], on_change=_pin, args=("query",), **LIST)
        best = first[1] if query == first[0] else strongest(forward, *here, query)
        key = token("key", columns, best, on_change=_pin, args=("key",), **LIST)
        view = one_of("pair_view", list(VIEWS), as_list=True, width=130, **WITHOUT_LABEL)
    edited, which = draw_active(context, (AFTER, BEFORE) if view in WHY else ())
    if which == AFTER:
        forward = edited.forward
        rows, columns = forward.rows(at.part), forward.columns(at.part)
        context = context.with_pass(forward)
    pair = query_key_pair(forward, *here, query, key)
    names = in_quotes(label_at(rows, query)), in_quotes(label_at(columns, key))
    sentence = pair_sentence(pair, words.cell, *names)
    if view in WHY:
        draw_sources(context, query, key, sentence, controls, as_table=view == TABLE)
    elif view == PRODUCTS:
        _draw_products(context, pair, sentence, controls)
    else:
        st.text(sentence)
    if view == VALUE:
        draw_value_path(context, query, key)
    elif view == DISTANCES:
        _draw_distance(context, pair)
    widgets.notes(forward.notes)
    return pair, view, forward


def _draw_products(
    context: PageContext, pair: QueryKeyPair, sentence: str, controls: DeltaGenerator
) -> None:
    """Query, key and product by dimension, and every step from the product to the weight.

    The `sentence` has the weight; the order of the dimensions joins the `controls`.
    """
    at, forward = context.choice, context.forward
    with controls:
        order = one_of("order", (BY_DIMENSION, BY_SIZE), **WITHOUT_LABEL)
    figures, numbers = widgets.side_by_side(7, 4)
    with figures:
        _draw_bars(pair, order, forward.config)
        widgets.notes(pinned.row_note(forward, at.part, pair.query))
        pass_position.forward_pass_link(context, PinnedCell(pair.query, pair.key))
    with numbers, st.container(key="stage-chart-pair_numbers"):
        st.text(sentence)
        tables.value_table(
            weight_steps(pair), "Every step from the product of query and key to the weight"
        )
        _draw_row(pair, token_names(forward.columns(at.part)))
    widgets.check("The row of weights, from the queries and keys", pair.difference)
    if len(pair.sharing) > 1:
        st.caption(
            f"Heads {pair.sharing[0]} to {pair.sharing[-1]} share this key (grouped-query "
            "attention); the query belongs to this head alone."
        )


def _pin(which: str) -> None:
    """For the callbacks: pin this token for the other pages, and the other one if it is here."""
    before, place = pinned.pinned_anywhere(), widget_state.get(which)
    other = "key" if which == "query" else "query"
    if getattr(before, other) != widget_state.get(other):  # it was pinned in another text
        before = replace(before, **{other: None})
    pinned.pin(replace(before, **{which: place}))


def pair_sentence(pair: QueryKeyPair, cell: str, row: str, column: str) -> str:
    """The pair in words, with its weight or the reason why it is 0."""
    if pair.allowed:
        return cell.format(row=row, column=column, value=three(pair.weight))
    if not pair.visible_keys:
        return f"Every key is masked for {row}: its whole row of weights is 0."
    return f"{column} is masked for {row}: the score becomes −∞, so the weight is 0."


def weight_steps(pair: QueryKeyPair) -> list[tuple[str, str]]:
    """Every step from the products to the weight, in the order the model takes them."""
    width = len(pair.q)
    is_root = math.isclose(pair.scale, width**-0.5)
    scaled = f"÷ √{width}" if is_root else f"× {three(pair.scale)}"
    steps = [(f"dot product q·k: the sum of {width} products", three(pair.dot))]
    if pair.cap is None:
        steps.append((f"{scaled}: the score", three(pair.score)))
    else:
        steps += [
            (scaled, three(pair.dot * pair.scale)),
            (f"capped at ± {three(pair.cap)} by tanh: the score", three(pair.score)),
        ]
    if pair.bias is not None:
        steps += [("+ position bias", three(pair.bias)), (SCORE_WITH_BIAS, three(pair.biased))]
    steps.append(("mask", "visible" if pair.allowed else "masked"))
    if pair.allowed:
        is_finite = math.isfinite(pair.biased) and math.isfinite(pair.largest)
        share = math.exp(pair.biased - pair.largest) if is_finite else math.nan
        keys = "1 key" if pair.visible_keys == 1 else f"{pair.visible_keys:,} keys"
        steps += [
            ("largest score of the row", three(pair.largest)),
            ("e^(score − largest)", three(share)),
            (f"÷ sum of these over {keys}", three(pair.total)),
        ]
        if pair.row_scale is not None:
            steps.append(("× scale of the row", three(pair.row_scale)))
    return [*steps, ("weight", three(pair.weight))]


def _draw_row(pair: QueryKeyPair, names: list[str]) -> None:
    """Every key that is visible to the query, the largest weight first."""
    order = pair.strongest_keys()
    if not order:
        return
    many = f"All {len(order):,} visible keys" if len(order) > 1 else "The only visible key"
    score = "score" if pair.bias is None else SCORE_WITH_BIAS
    st.markdown(f"**{many} of this query**")
    columns = {
        "key": [names[place] for place in order],
        score: [three(value) for value in pair.row_scores[order].tolist()],
        "weight": [weight_text(value) for value in pair.row_weights[order].tolist()],
    }
    with st.container(key="pair_row"):
        tables.table(columns, right=(score, "weight"), most_rows=KEYS_IN_SIGHT)


def _draw_bars(pair: QueryKeyPair, order: str, config: TransformerConfig) -> None:
    """Query, key and product one below the other, with their dimensions aligned."""
    places = pair.by_size() if order == BY_SIZE else list(range(len(pair.q)))
    with chart_stage("pair"):
        for name, values in ("query", pair.q), ("key", pair.k), ("product", pair.products):
            spec = dimension_bars(values.tolist(), places, name, last=name == "product")
            title = f"{name.capitalize()} by dimension"
            chart(spec, height="stretch", key=f"pair_{name}", title=title)
    applied = {"norm": config.qk_norm, "rotation": config.positions == "rotary"}
    after = " and ".join(what for what, is_applied in applied.items() if is_applied)
    st.caption(
        f"A vector has {len(pair.q)} numbers, its dimensions. "
        f"Positive products sum to {three(pair.positive)}, negative ones to "
        f"{three(pair.dot - pair.positive)}: {three(pair.dot)} in all."
        + (f" Query and key are shown after their {after}." if after else "")
    )


def _draw_distance(context: PageContext, pair: QueryKeyPair) -> None:
    """The pair at other distances, where positions act on the score."""
    at, forward = context.choice, context.forward
    curve = by_distance(forward, *at.place, pair.query, pair.key)
    with st.container(width=widgets.WIDEST):
        st.markdown("**The same pair at other distances**")
        if curve is None:
            models = context.models.items()
            fitting = [name for name, of in models if of.config and has_distances(of.config)]
            st.text(_no_curve(forward) + " Open a model that has one." * bool(fitting))
            widgets.offer_models(fitting[:MOST_OFFERED])
            return
        spec = distance_curve(curve.points, curve.actual, curve.what)
        title = "The same pair at other distances"
        chart(spec, height=DISTANCE_HEIGHT, key="pair_distance", title=title)
        st.caption(_curve_caption(curve))


def _curve_caption(curve: DistanceCurve) -> str:
    what = {
        "score": "Rotary positions: the score with the key rotated to every other position by the "
        "model's own angles, the query unchanged.",
        "bias": "The bias that this head's positions add to the score, by distance.",
    }[curve.what]
    steps = f" One distance in {curve.step} is drawn." if curve.step > 1 else ""
    return f"{what} The dot is this pair, at distance {curve.actual}.{steps}"


def _no_curve(forward: ForwardPass) -> str:
    if forward.config.positions == "none":
        return "Without a position encoding distance changes nothing, so there is no curve."
    return (
        "This model adds its positions to the embeddings, so they are part of query and key: "
        "there is no curve for the distance alone."
    )


def product_code(
    forward: ForwardPass, part: str, layer: int, head: int, query: int, key: int
) -> None:
    trace, at, group = forward.trace, site(part, layer), forward.config.kv_head(head)
    q = trace[f"{at}.q"][0, head, query]
    k = trace[f"{at}.k"][0, group, key]
    products = q * k
    score = forward.scores(part, layer, head)[query, key]
    weights = forward.weights(part, layer, head)[query]
    print(products.sum(), score, weights[key])

    values = trace[f"{at}.v"][0, group]
    stack, attention = part.split(".")
    w_o = trace.model.get_parameter(f"{stack}.blocks.{layer}.{attention}.o_proj.weight")
    width = forward.config.head_width
    to_stream = w_o[:, head * width : (head + 1) * width]
    output = to_stream @ (weights @ values)
    for_this_key = to_stream @ (weights[key] * values[key])
    print(output, for_this_key)


VALUE_HEIGHT, MOST_NUMBERS = 110, 32


def draw_value_path(context: PageContext, query: int, key: int) -> None:
    """The key's value up to the residual stream, then one dimension of it with all its terms."""
    contribution = key_contribution(context.forward, *context.choice.place, query, key)
    order = contribution.head_write.abs().argsort(descending=True)[:MOST_NUMBERS].tolist()
    # chosen on the Forward pass page or by a link
    number = address.whole_number(address.current_value("number"), len(contribution.head_write))
    options = [*order, *([] if number in (None, *order) else [number])]
    figures, numbers = widgets.side_by_side(7, 4)
    with figures:
        st.markdown("**From the weight to the residual stream**")
        _draw_value_bars(contribution, order)
    with numbers:
        number = int(one_of("number", [str(option) for option in options], as_list=True))
        lines = stream_terms(contribution).items()
        tables.value_table(
            [(name, three(float(values[number]))) for name, values in lines],
            "Every step from the value to one dimension of the residual stream",
        )
        what = "The residual stream after the whole block at this query"
        widgets.check(what, contribution.difference)


def stream_terms(contribution: KeyContribution) -> dict[str, Tensor]:
    """The terms of the residual stream, (d) each, in the order of the model."""
    terms = {
        "this key: weight × value × W_O": contribution.key_write,
        "all keys: output of this head": contribution.head_write,
        "other heads": contribution.others,
        "bias of W_O": contribution.bias,
        "attention output": contribution.out,
    }
    if contribution.out_changes:
        terms["attention output, as it is added"] = contribution.added
    terms["residual stream before"] = contribution.before
    if contribution.sum_changes:
        return {
            **terms,
            "sum": contribution.before + contribution.added,
            "residual stream after: sum, normed": contribution.after,
        }
    return {**terms, "residual stream after": contribution.after}


def _draw_value_bars(contribution: KeyContribution, order: list[int]) -> None:
    places = list(range(len(contribution.value)))
    for name, title, values in (
        ("value", "value", contribution.value),
        ("weighted", "× weight", contribution.weighted_value),
        ("head", "all keys", contribution.head_out),
    ):
        spec = dimension_bars(values.tolist(), places, title, last=name == "head")
        height = VALUE_HEIGHT + 50 * (name == "head")
        chart(spec, height=height, key=f"onward_{name}", title=f"Value of the key: {title}")
    st.caption(
        f"The value of the key, the value × its weight {three(contribution.weight)}, and the sum "
        "over all keys: the output of the head."
    )
    spec = dimension_bars(contribution.head_write.tolist(), order, "W_O", last=True)
    title = "Written to the residual stream"
    chart(spec, height=VALUE_HEIGHT + 50, key="onward_written", title=title)
    count = len(contribution.head_write)
    which = (
        f"the {len(order)} largest of {count} dimensions"
        if len(order) < count
        else "all dimensions"
    )
    st.caption(f"Head output × W_O, what this head adds to the residual stream: {which}.")
