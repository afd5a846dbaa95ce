"""The Query and key page: which two tokens, their product, the way to the weight, the distance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from explorer.analysis.query_key import ByDistance, Pair, by_distance, pair, strongest
from explorer.app.context import page_context
from explorer.app.controls import one_of, token, token_names
from explorer.charts import query_key_bars
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets import attention_code as snippets
from explorer.text.number_format import three
from explorer.text.token_labels import Label, text_of
from explorer.views.query_key import value_panel
from explorer.views.shared import pinned, pinned_pair, tables, widgets
from explorer.views.shared.pinned import Held
from models import TransformerConfig

SCORE_WITH_BIAS = "score with bias"
BY_DIMENSION, BY_SIZE = "By dimension", "By size of the product"
SMALL_HEIGHT, HEIGHT, DISTANCE_HEIGHT = 110, 210, 260
ROW_HEIGHT = 38 + 35 * 15
"""Fifteen keys are in sight."""


def show(forward: ForwardPass) -> Pair:
    """The whole screen for the head that is chosen in the sidebar, and which two tokens."""
    at = page_context().choice
    here = (at.part, at.layer, at.head)
    words = forward.part(at.part).words
    rows, columns = forward.rows(at.part), forward.columns(at.part)
    places = widgets.side_by_side(3, 3, 4)
    with places[0]:
        label = _called("Query", words.row)
        query = token(label, "query", rows, len(rows) - 1, on_change=_hold, args=("query",))
    with places[1]:
        best = strongest(forward, *here, query)
        label = _called("Key", words.column)
        key = token(label, "key", columns, best, on_change=_hold, args=("key",))
    with places[2]:
        order = one_of("Order of the dimensions", "order", (BY_DIMENSION, BY_SIZE))
    found = pair(forward, *here, query, key)
    title = f"**Layer {at.layer}, head {at.head}** · {forward.part(at.part).title}"
    names = (f"“{text_of(rows[query])}”", f"“{text_of(columns[key])}”")
    drawn, numbers = widgets.side_by_side(7, 4)
    with drawn:
        st.markdown(title)
        st.text(said(found, words.cell, *names))
        widgets.notes(pinned.both_names(forward, at.part, query))
        pinned_pair.way_here(Held(query, key))
        _bars(found, order, forward.config)
    with numbers:
        st.markdown("**From the product to the weight**")
        tables.steps(ledger(found), "Every step from the product of query and key to the weight")
        st.caption(_checked(found))
        _row(found, columns)
    value_panel.show(forward, query, key)
    _distance(forward, by_distance(forward, *here, query, key), found)
    return found


def _hold(which: str) -> None:
    """For the callbacks: the other pages show the same token."""
    before, place = pinned.asked(), st.session_state[which]
    pinned.hold(Held(place, before.key) if which == "query" else Held(before.query, place))


def pasted(forward: ForwardPass, found: Pair) -> str:
    """The lines that make the numbers of this pair."""
    at, folder = page_context().choice, page_context().folder
    return snippets.pair(forward, folder, (at.part, at.layer, at.head), found.query, found.key)


def _called(label: str, role: str) -> str:
    """Cross-attention has other words for its rows and columns."""
    return label if role == label.lower() else f"{label}: {role}"


def said(found: Pair, cell: str, row: str, column: str) -> str:
    """The pair in words, with its weight or the reason why there is none."""
    if found.allowed:
        return cell.format(row=row, column=column, value=three(found.weight))
    if not found.seen:
        return f"{row} may look at nothing: its whole row of weights is 0."
    return f"{row} may not look at {column}: the mask takes the score out, so the weight is 0."


def ledger(found: Pair) -> list[tuple[str, str]]:
    """Every step from the products to the weight, in the order the model takes them."""
    width = len(found.q)
    is_root = math.isclose(found.scale, width**-0.5)
    scaled = f"÷ √{width}" if is_root else f"× {three(found.scale)}"
    named = "" if found.cap is not None else ": the score"
    steps = [
        (f"q·k, the sum of {width} products", three(found.dot)),
        (f"{scaled}{named}", _product(found)),
    ]
    if found.cap is not None:
        steps.append((f"bent to stay within ± {three(found.cap)}: the score", three(found.score)))
    if found.bias is not None:
        steps += [
            ("plus the bias of the distance", three(found.bias)),
            (SCORE_WITH_BIAS, three(found.biased)),
        ]
    may = "may look" if found.allowed else "may not look"
    steps.append(("mask", may))
    if found.allowed:
        share = math.exp(found.biased - found.largest) if _known(found) else math.nan
        keys = "1 key" if found.seen == 1 else f"{found.seen:,} keys"
        steps += [
            ("largest score of the row", three(found.largest)),
            ("e^(this − largest)", three(share)),
            (f"÷ the same, summed over {keys}", three(found.total)),
        ]
    return [*steps, ("weight", three(found.weight))]


def _score(found: Pair) -> str:
    """What the softmax is given is called."""
    return "score" if found.bias is None else SCORE_WITH_BIAS


def _known(found: Pair) -> bool:
    return math.isfinite(found.biased) and math.isfinite(found.largest)


def _product(found: Pair) -> str:
    return three(found.score if found.cap is None else found.dot * found.scale)


def _row(found: Pair, columns: Sequence[Label]) -> None:
    """What else the query may look at, the strongest key first."""
    order = found.strongest_keys()
    if not order:
        return
    names = token_names(columns)
    many = f"All {len(order):,} keys that this query may look at"
    st.markdown(f"**{many if len(order) > 1 else 'The only key that this query may look at'}**")
    st.dataframe(
        {
            "key": [names[place] for place in order],
            _score(found): [three(value) for value in found.row_scores[order].tolist()],
            "weight": [three(value) for value in found.row_weights[order].tolist()],
        },
        hide_index=True,
        height=min(ROW_HEIGHT, 38 + 35 * len(order)),
        column_config={
            name: st.column_config.TextColumn(alignment="right")
            for name in (_score(found), "weight")
        },
    )


def _checked(found: Pair) -> str:
    """What the arithmetic on this page and the pass differ by, and who shares the key."""
    text = (
        "All of these are the model's own numbers. Made again from its queries and keys, the "
        f"whole row of weights differs by at most {three(found.difference)} of its largest."
    )
    if len(found.sharing) > 1:
        text += (
            f" Heads {found.sharing[0]} to {found.sharing[-1]} share this key (grouped-query "
            "attention); the query is this head's own."
        )
    return text


def _bars(found: Pair, order: str, config: TransformerConfig) -> None:
    """Query, key and product under each other, every dimension in one line."""
    places = found.by_size() if order == BY_SIZE else list(range(len(found.q)))
    for name, values, height in (
        ("query", found.q, SMALL_HEIGHT),
        ("key", found.k, SMALL_HEIGHT),
        ("product", found.products, HEIGHT),
    ):
        spec = query_key_bars.dimension_bars(values.tolist(), places, name, last=name == "product")
        st.vega_lite_chart(spec, height=height, key=f"pair_{name}")
    st.caption(
        f"Products above zero add up to {three(found.positive)}, those below to "
        f"{three(found.dot - found.positive)}: together {three(found.dot)}. {_as_they_met(config)}"
    )


def _as_they_met(config: TransformerConfig) -> str:
    """What was done to query and key before their product."""
    done = {"their norms": config.qk_norm, "their rotation": config.positions == "rotary"}
    after = " and ".join(what for what, is_done in done.items() if is_done)
    return "Query and key are shown as they met" + (f", after {after}." if after else ".")


def _distance(forward: ForwardPass, curve: ByDistance | None, found: Pair) -> None:
    """The pair at other distances, where positions act on the score."""
    with st.container(width=widgets.WIDEST):
        st.markdown("**The same two tokens at another distance**")
        if curve is None:
            st.caption(_no_curve(forward))
            return
        spec = query_key_bars.distance_curve(curve.points, curve.actual, curve.what)
        st.vega_lite_chart(spec, height=DISTANCE_HEIGHT, key="pair_distance")
        st.caption(_curve_said(curve))


def _curve_said(curve: ByDistance) -> str:
    what = {
        "score": "Rotary positions: the key is turned by the model's own angles to where it "
        "would stand, the query stays; drawn is their score.",
        "bias": "The number that this head's positions add to the score, by the distance alone.",
    }[curve.what]
    steps = f" Drawn is one distance in {curve.step}." if curve.step > 1 else ""
    return f"{what} The dot is this pair, {curve.actual} apart.{steps}"


def _no_curve(forward: ForwardPass) -> str:
    if page_context().choice.part == "decoder.cross_attn":
        return "Cross-attention knows no distance: query and key stand in two different texts."
    if forward.config.positions == "none":
        return "This model is told no positions, so distance changes nothing."
    return (
        "This model's positions were added to its embeddings, so they are part of the query and "
        "of the key, and there is no curve for the distance alone."
    )
