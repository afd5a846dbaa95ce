"""What a head copies in the text: the tokens it attends to, and what each would raise and lower."""

from collections.abc import Iterable

import streamlit as st

from explorer.analysis.circuits.head_at_work import clean_pass, direct_effect, source_tokens
from explorer.analysis.circuits.text_pairs import TokenPair
from explorer.catalog.opened_model import Opened
from explorer.text.labels import cut
from explorer.text.literal import literal
from explorer.text.number_format import three
from explorer.text.token_labels import label_at, named_at, text_of
from explorer.views.interventions.output_effects import signed

LONGEST_SOURCE = 16
"""Characters of a token in the table."""
NO_TOKENS = "The output is a class, so there are no tokens that a head raises or lowers."


def draw_direct_effect(opened: Opened, pair: TokenPair, layer: int, head: int) -> None:
    """What it adds directly to the logits of both answers, past no later block."""
    found = direct_effect(opened, pair, layer, head)
    answer, against = (literal(each) for each in pair.names)
    st.markdown(
        f"Direct contribution: {signed(found.to_answer)} to “{answer}”, "
        f"{signed(found.to_against)} to “{against}”, so {signed(found.difference)} to a logit "
        f"difference of {signed(found.logit_difference)}."
    )


def draw_sources(opened: Opened, pair: TokenPair, layer: int, head: int) -> None:
    """The tokens that it attends to most from the place that is read, and what each writes."""
    rows, tokens = source_tokens(opened, pair, layer, head), clean_pass(opened, pair).tokens
    if not rows:
        st.caption(NO_TOKENS)
        return
    st.markdown(f"**What it writes when it attends from {literal(named_at(tokens, pair.place))}**")
    st.dataframe(
        {
            "attends to": [f"{each.place} · {label_at(tokens, each.place)}" for each in rows],
            "weight": [three(each.weight) for each in rows],
            "answer − against": [signed(each.to_answer) for each in rows],
            "raises most": [_tokens(opened, each.raised) for each in rows],
            "lowers most": [_tokens(opened, each.lowered) for each in rows],
        },
        hide_index=True,
        column_config={
            name: st.column_config.TextColumn(alignment="right")
            for name in ("weight", "answer − against")
        },
    )
    st.caption(
        "W_U W_O v of each token, as if the whole weight were on it, in logits less their mean "
        "over the vocabulary. v is the value in this pass; the last norm is frozen at this place; "
        "later layers, which may read it too, are left out."
    )


def _tokens(opened: Opened, found: Iterable[tuple[int, float]]) -> str:
    labels = (
        (cut(text_of(opened.tokenizer.label(i)), LONGEST_SOURCE), value) for i, value in found
    )
    return "   ".join(f"{label} {signed(value)}" for label, value in labels)
