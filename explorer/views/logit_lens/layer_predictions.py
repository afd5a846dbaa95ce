"""The logit lens on the screen: the likeliest after each layer, and the way of the answer."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from torch import Tensor

from explorer.analysis.logit_lens import lens, ranks
from explorer.analysis.output_change import has_words
from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.catalog.opened_model import Opened
from explorer.charts.bars import bars
from explorer.inference.answers import class_names
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.text.literal import literal
from explorer.text.number_format import three
from explorer.text.token_labels import text_of
from explorer.views.logit_lens import attribution
from explorer.views.shared.effects import place_chosen

SHOWN = 5
BAR = 28
WIDTH = 560


def show(opened: Opened, forward: ForwardPass) -> tuple[int, int] | None:
    """One row a layer; how likely the answer is; what one logit is made of.

    Gives the place, and the number of the word or class of that logit; None without a head.
    """
    if opened.config.head == "none":
        say("This model ends in vectors, so there is nothing to read its streams with.")
        return None
    place, at = place_chosen(opened, forward), page_context().choice
    logits = kept(
        opened,
        ("lens", at.text, at.pair, place),
        lambda: lens(forward, place),
        lambda made: made.nbytes,
    )
    answer = int(logits[-1].argmax())
    named = _names(opened)
    steps = ["embedding", *(f"layer {n}" for n in range(len(logits) - 1))]
    st.markdown("**The likeliest after each layer**")
    _table(logits, steps, named)
    with st.container(width=WIDTH):
        st.markdown(f"**The answer: {literal(named(answer))}**")
        chances = logits.double().softmax(-1)[:, answer].tolist()
        places = ranks(logits, answer)
        labels = [f"{step} · {at}." for step, at in zip(steps, places, strict=True)]
        st.vega_lite_chart(
            bars(labels, chances), width="stretch", height=BAR * len(steps) + 30, key="way"
        )
        st.caption("How likely it is after each layer, and which place it has among all options.")
    st.markdown("**What a logit is made of**")
    return place, attribution.show(opened, forward, place, logits[-1], named)


def _table(logits: Tensor, steps: list[str], named: Callable[[int], str]) -> None:
    best = logits.double().softmax(-1).topk(min(SHOWN, logits.shape[-1]), -1)
    columns = {
        f"{place + 1}.": [
            f"{named(number)}  {three(chance)}"
            for number, chance in zip(
                best.indices[:, place].tolist(), best.values[:, place].tolist(), strict=True
            )
        ]
        for place in range(best.indices.shape[1])
    }
    st.dataframe({"after": steps, **columns}, hide_index=True, height=38 + 35 * min(len(steps), 16))


def _names(opened: Opened) -> Callable[[int], str]:
    if has_words(opened.config):
        return lambda number: text_of(opened.tokenizer.label(number))
    return class_names(opened).__getitem__
