"""A text longer than a model was trained on, really passed: what its positions do out there."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from torch import Tensor

from explorer.analysis.position_experiments import MOST_TOKENS, Longer, can_have, longer
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog.attention_parts import WORDS
from explorer.catalog.opened_model import Opened
from explorer.charts.position_curves import over_places
from explorer.inference.results_cache import kept
from explorer.snippets import positions_code as snippets
from explorer.text.number_format import three
from explorer.views.positions.missing_positions import CANNOT, missing
from explorer.views.shared import widgets

HEIGHT = 280
FACTORS = {"1.25 ×": 1.25, "1.5 ×": 1.5, "2 ×": 2.0}
BEYOND = {
    "sinusoidal": "The formula goes on: a later position gets a vector that the model has never "
    "met.",
    "rotary": "The angles go on: a later position is turned further than the model has ever met, "
    "and distances appear that are new to it.",
    "alibi": "The straight line goes on: a key further away counts less, near ones as ever.",
    "relative": "All distances of the last bucket share its number: far keys look equally far.",
    "none": "There are no positions to run out of; only the number of keys is new.",
}


def length(opened: Opened, name: str) -> Callable[[], str] | None:
    """The chosen head and the loss of a decoder, before and beyond what was trained; the lines."""
    trained = opened.config.max_len
    if not can_have(opened.model, name):
        missing(name, CANNOT)
        return None
    if name == "learned":
        say(
            f"The table has {trained:,} rows, so {trained:,} tokens fit: position {trained:,} has "
            "no vector, and a longer text cannot be read."
        )
        return None
    st.caption(BEYOND[name])
    if trained * 1.25 > MOST_TOKENS:
        say(f"This model reads {trained:,} tokens; more than {MOST_TOKENS:,} are not passed here.")
        return None
    count = _count(trained)
    if not can_have(opened.model, name, count):
        missing(name, CANNOT)
        return None
    forward, at = page_context().forward, page_context().choice
    found = kept(
        opened,
        ("longer", forward.text, forward.pair, count, name, at.part, at.layer, at.head),
        lambda: longer(opened, forward, count, name, at.part, at.layer, at.head),
        lambda made: made.looks_at.nbytes,
    )
    if found.part != at.part:
        st.caption(
            f"{forward.part(at.part).title}, chosen in the sidebar, starts from what is written. "
            "It is what the encoder reads that is longer here, so its layer 0 is shown."
        )
    where = f"layer {found.layer}, head {at.head} · {forward.part(found.part).title}"
    _show(found, name, opened.config.positions, where)
    folder = page_context().folder
    return lambda: snippets.longer(forward, folder, count, name, (found.part, found.layer, at.head))


def _count(trained: int) -> int:
    """How many tokens are passed; lengths that are too many are not offered, and said to be."""
    fitting = [name for name, factor in FACTORS.items() if trained * factor <= MOST_TOKENS]
    factor = FACTORS[one_of("Length", "times", fitting, fitting[-1])]
    if others := [name for name in FACTORS if name not in fitting]:
        are = "are" if len(others) > 1 else "is"
        st.caption(
            f"More than {MOST_TOKENS:,} tokens are not passed here, so {' and '.join(others)} "
            f"{are} not offered."
        )
    return int(trained * factor)


def _show(found: Longer, name: str, own: str, where: str) -> None:
    whose = "" if name == own else " These are not the positions that it was trained with."
    st.text(
        f"Your sentence again and again, {found.length:,} tokens in one pass; the model is made "
        f"for {found.trained:,}.{whose}"
    )
    places = widgets.side_by_side(1, 1) if found.nats is not None else widgets.side_by_side(1)
    with places[0]:
        stack = WORDS[found.part].row
        st.markdown(f"**How many keys each {stack} looks at: {where}**")
        spec = over_places(found.looks_at.tolist(), found.trained, "keys")
        st.vega_lite_chart(spec, height=HEIGHT, key="looks_at")
        st.caption(_halves(found, found.looks_at, "keys", "e to the entropy of its weights"))
    if found.nats is None:
        return
    with places[1]:
        st.markdown("**What it loses on each next token**")
        spec = over_places(found.nats.tolist(), found.trained, "nats")
        st.vega_lite_chart(spec, height=HEIGHT, key="nats")
        st.caption(_halves(found, found.nats, "nats", "−ln of the chance of the next token"))


def _halves(found: Longer, values: Tensor, unit: str, what: str) -> str:
    inside, beyond = found.halves(values)
    return (
        f"On average {three(inside)} {unit} up to position {found.trained - 1}, {three(beyond)} "
        f"beyond ({what})."
    )
