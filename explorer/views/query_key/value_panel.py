"""From a weight to the residual stream: value, head output, W_O, one dimension of the stream."""

import streamlit as st
from torch import Tensor

from explorer.analysis.residual_writes import KeyContribution, key_contribution
from explorer.app import url
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.charts import query_key_bars
from explorer.components.chart import chart
from explorer.text.number_format import three
from explorer.views.shared import tables, widgets

HEIGHT, MOST_NUMBERS = 110, 32


def draw_value_path(context: PageContext, query: int, key: int) -> None:
    """The key's value on its way, then one dimension of the stream with all that is added to it."""
    at = context.choice
    found = key_contribution(context.forward, at.part, at.layer, at.head, query, key)
    order = found.written.abs().argsort(descending=True)[:MOST_NUMBERS].tolist()
    # pinned on the Forward pass page, or asked for by a link
    number = url.whole_number(url.current_value("number"), len(found.written))
    options = [*order, *([] if number in (None, *order) else [number])]
    drawn, numbers = widgets.side_by_side(7, 4)
    with drawn:
        st.markdown("**From the weight to the residual stream**")
        _draw_bars(found, order)
    with numbers:
        names = [str(each) for each in options]
        number = int(one_of("number", names, as_list=True))
        lines = stream_terms(found).items()
        tables.value_table(
            [(name, three(float(values[number]))) for name, values in lines],
            "Every step from the value to one dimension of the residual stream",
        )
        again = "The residual stream after the whole block at this query, recomputed"
        st.caption(widgets.recomputed(again, found.difference))


def stream_terms(found: KeyContribution) -> dict[str, Tensor]:
    """What is added up to the stream, (d) each, in the order of the model."""
    terms = {
        "this key: weight × value × W_O": found.written_for_key,
        "all keys: output of this head": found.written,
        "other heads": found.others,
        "bias of W_O": found.bias,
        "attention output": found.out,
    }
    if found.where == "sandwich":
        terms["attention output, normed"] = found.added
    terms["residual stream before"] = found.before
    if found.where == "post":
        return {**terms, "sum": found.together, "residual stream after: sum, normed": found.after}
    return {**terms, "residual stream after": found.after}


def _draw_bars(found: KeyContribution, order: list[int]) -> None:
    places = list(range(len(found.value)))
    for name, title, values in (
        ("value", "value", found.value),
        ("given", "× weight", found.given),
        ("head", "all keys", found.head_out),
    ):
        spec = query_key_bars.dimension_bars(values.tolist(), places, title, last=name == "head")
        height = HEIGHT + 50 * (name == "head")
        chart(spec, height=height, key=f"onward_{name}", title=f"Value of the key: {title}")
    st.caption(
        f"The value of the key, the value × its weight {three(found.weight)}, and the sum over all "
        "keys: the output of the head."
    )
    spec = query_key_bars.dimension_bars(found.written.tolist(), order, "W_O", last=True)
    title = "Written to the residual stream"
    chart(spec, height=HEIGHT + 50, key="onward_written", title=title)
    count = len(found.written)
    which = (
        f"the {len(order)} largest of {count} dimensions"
        if len(order) < count
        else "all dimensions"
    )
    st.caption(f"Head output × W_O, what this head adds to the residual stream: {which}.")
