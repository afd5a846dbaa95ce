"""From a weight on to the stream, on the screen: value, head, W_O, and one number of the stream."""

from __future__ import annotations

import streamlit as st
from torch import Tensor

from explorer.analysis.value_contribution import Onward, onward
from explorer.app import url
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.charts import query_key_bars
from explorer.inference.forward_pass import ForwardPass
from explorer.text.number_format import three
from explorer.views.shared import tables, widgets

HEIGHT, MOST_NUMBERS = 110, 32


def show(forward: ForwardPass, query: int, key: int) -> None:
    """The value of the key on its way, then one number of the stream with all that is added."""
    at = page_context().choice
    found = onward(forward, at.part, at.layer, at.head, query, key)
    order = found.written.abs().argsort(descending=True)[:MOST_NUMBERS].tolist()
    options = [*order]
    if (wish := _wish(len(found.written))) not in (None, *order):
        options.append(wish)
    drawn, numbers = widgets.side_by_side(7, 4)
    with drawn:
        st.markdown("**From the weight to the stream**")
        _bars(found)
        _written(found, order)
    with numbers:
        number = int(
            one_of("One number of the stream", "number", [str(n) for n in options], as_list=True)
        )
        tables.steps(steps(found, number), "Every step from the value to one number of the stream")
        st.caption(
            "The whole block was made again at this query; its last stream differs from that of "
            f"the pass by at most {three(found.difference)} of its largest number."
        )


def _wish(width: int) -> int | None:
    """The number that is held in the whole pass, or that a link asks for."""
    return url.whole_number(url.current("number"), width)


def steps(found: Onward, number: int) -> list[tuple[str, str]]:
    """What is added up to one number of the stream, in the order the model does it."""
    return [(name, three(float(values[number]))) for name, values in lines(found).items()]


def lines(found: Onward) -> dict[str, Tensor]:
    """The same of every number of the stream, (d) each; the norm stands where the model has it."""
    start = {
        "this key, weight × value × W_O": found.written_for_key,
        "all keys: what this head writes": found.written,
        "the other heads": found.others,
        "bias of W_O": found.bias,
        "the attention writes": found.out,
    }
    if found.where == "sandwich":
        start["what it writes, normed"] = found.added
    start["the stream before"] = found.before
    if found.where == "post":
        return {**start, "together": found.together, "the stream after: that, normed": found.after}
    return {**start, "the stream after": found.after}


def _bars(found: Onward) -> None:
    places = list(range(len(found.value)))
    for name, title, values in (
        ("value", "value", found.value),
        ("given", "× weight", found.given),
        ("head", "all keys", found.head_out),
    ):
        spec = query_key_bars.dimensions(values.tolist(), places, title, last=name == "head")
        st.vega_lite_chart(spec, height=HEIGHT + 50 * (name == "head"), key=f"onward_{name}")
    st.caption(
        f"The value of the key, the same times its weight {three(found.weight)}, and the sum of "
        "this over all keys: what the head gives."
    )


def _written(found: Onward, order: list[int]) -> None:
    spec = query_key_bars.dimensions(found.written.tolist(), order, "written", last=True)
    st.vega_lite_chart(spec, height=HEIGHT + 50, key="onward_written")
    cut = (
        f" The {len(order)} largest of {len(found.written)} numbers."
        if len(order) < len(found.written)
        else ""
    )
    st.caption(f"What W_O makes of it: what this head writes into the stream.{cut}")
