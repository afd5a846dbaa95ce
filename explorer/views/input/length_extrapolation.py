"""Length extrapolation: what a head and the loss do beyond the trained positions."""

import streamlit as st
from torch import Tensor

from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog.attention_parts import head_title
from explorer.catalog.folders import own_name
from explorer.catalog.opened_model import OpenModel
from explorer.charts.figure_data import WINDOW
from explorer.charts.position_curves import position_curve
from explorer.components.chart import chart
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.position_passes import (
    MAX_EXTRAPOLATED,
    LengthExtrapolation,
    can_run,
    extrapolate,
)
from explorer.inference.results_cache import cached
from explorer.text.number_format import three
from explorer.views.input.scheme import CANNOT, draw_missing_positions
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script

LENGTH_FACTORS = {"1.25 ×": 1.25, "1.5 ×": 1.5, "2 ×": 2.0}
BEYOND = {
    "sinusoidal": "The formula continues: later positions get vectors that the model has never "
    "seen.",
    "rotary": "The angles continue: later positions are rotated further than in training, and "
    "distances occur that are new to the model.",
    "alibi": "The penalty continues linearly: the further away a key, the more is subtracted from "
    "its score.",
    "relative": "All distances in the last bucket share one bias: distant keys cannot be told "
    "apart by distance.",
    "none": "There are no position encodings; only the number of keys is new.",
}


def draw_length_extrapolation(context: PageContext, scheme: str) -> Script | None:
    """The chosen head and a decoder's loss at and beyond the trained length; returns the code."""
    opened = context.opened
    trained = opened.config.max_len
    if not can_run(opened.model, scheme):
        draw_missing_positions(context, scheme, CANNOT)
        return None
    if scheme == "learned":
        say(
            f"The table has {trained:,} rows, so {trained:,} tokens fit: position {trained:,} has "
            "no vector, and a longer text cannot be read."
        )
        return None
    if trained * 1.25 > MAX_EXTRAPOLATED:
        say(
            f"This model reads {trained:,} tokens; texts of more than {MAX_EXTRAPOLATED:,} are not "
            "run here."
        )
        return None
    count = _choose_length(trained)
    if not can_run(opened.model, scheme, count):
        draw_missing_positions(context, scheme, CANNOT)
        return None
    forward, at = context.forward, context.choice
    result = cached(
        opened,
        ("longer", forward.text, forward.pair, count, scheme, *at.place),
        lambda: extrapolate(opened, forward, count, scheme, *at.place),
    )
    where = head_title(at.called, result.part, result.layer, at.head)
    _draw_curves(result, at.called, where)
    st.caption(BEYOND[scheme])
    if result.part != at.part:
        st.caption(
            f"{forward.part(at.part).words.name}, chosen above, reads the generated text. "
            "Only the encoder's text is longer here, so layer 0 of the encoder is shown."
        )
    note = "" if scheme == opened.config.positions else " It was trained with other positions."
    st.text(
        f"Your sentence repeated to {result.length:,} tokens, in one forward pass; the model's "
        f"maximum length is {result.trained:,}.{note}"
    )
    widgets.notes(forward.notes)
    return script(longer_code, opened, forward, count, scheme, *at.place)


def _choose_length(trained: int) -> int:
    """The number of tokens to run; a note names the lengths that are too long to offer."""
    fitting = [
        name for name, factor in LENGTH_FACTORS.items() if trained * factor <= MAX_EXTRAPOLATED
    ]
    factor = LENGTH_FACTORS[one_of("times", fitting, fitting[-1])]
    if others := [name for name in LENGTH_FACTORS if name not in fitting]:
        st.caption(
            f"Texts of more than {MAX_EXTRAPOLATED:,} tokens are not run here, so "
            f"{' and '.join(others)} {'are' if len(others) > 1 else 'is'} not offered."
        )
    return int(trained * factor)


def _draw_curves(result: LengthExtrapolation, model: str, where: str) -> None:
    places = widgets.side_by_side(1, 1) if result.nats is not None else widgets.side_by_side(1)
    titles = [f"{where}, effective keys per query", f"{own_name(model)} · Loss on each next token"]
    values = [(result.effective_keys, "keys", "e to the entropy of its weights")]
    if result.nats is not None:
        values.append((result.nats, "nats", "−ln of the probability of the next token"))
    for place, title, (numbers, unit, formula) in zip(places, titles, values, strict=False):
        with place:
            st.markdown(widgets.bold_title(title))
            spec = position_curve(numbers.tolist(), result.trained, unit)
            chart(spec, height=WINDOW, key=f"extrapolated_{unit}", title=title)
            st.caption(_averages(result, numbers, unit, formula))


def _averages(result: LengthExtrapolation, values: Tensor, unit: str, formula: str) -> str:
    inside, beyond = result.halves(values)
    return (
        f"On average {three(inside)} {unit} up to position {result.trained - 1}, {three(beyond)} "
        f"beyond ({formula})."
    )


def longer_code(
    opened: OpenModel,
    forward: ForwardPass,
    length: int,
    scheme: str,
    part: str,
    layer: int,
    head: int,
) -> None:
    result = extrapolate(opened, forward, length, scheme, part, layer, head)
    print(result.effective_keys, result.nats)
