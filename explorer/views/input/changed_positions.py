"""Passes at other positions: the tokens in another order, and beyond the trained positions."""

import math
import re
from typing import Any

import streamlit as st

from explorer.analysis.position_schemes import SCHEMES
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.app.context import PageContext
from explorer.app.controls import follow, one_of, text_field, token
from explorer.app.messages import say
from explorer.catalog.attention_parts import head_title
from explorer.catalog.opened_model import OpenModel
from explorer.charts.figure_data import WINDOW
from explorer.charts.position_curves import position_curve
from explorer.components.chart import chart
from explorer.components.chips import chips
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.position_passes import (
    MAX_EXTRAPOLATED,
    LengthExtrapolation,
    Permutation,
    can_run,
    extrapolate,
    longest_text,
    permuted,
    reversed_order,
    swapped_order,
)
from explorer.inference.results_cache import cached
from explorer.text.number_format import percent, three
from explorer.text.token_labels import texts
from explorer.text.visible_text import cut
from explorer.views.input.scheme import CANNOT, draw_missing_positions
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.tables import table

REVERSED, SWAP, CUSTOM = "Reversed", "Swap two tokens", "Custom order"
PERMUTATION_ROUNDING = 1e-4
"""A change of a vector below this share of its norm is rounding in single precision."""
LEAST_SCALE = 0.01
"""The least end of the colour scale of a difference, or rounding would look like a change."""
NO_VALUES = "The final vectors are NaN, so no change can be measured."
SAME_ANSWER = (
    "The output is the likeliest token at every step. Both times the decoder is fed the answer "
    "that the model generated for your sentence, so that the steps can be compared."
)


def draw_permutation(context: PageContext, scheme: str) -> Script | None:
    """The forward passes in both orders and what changed for every token; returns the code."""
    opened, forward, at = context.opened, context.forward, context.choice
    if not can_run(opened.model, scheme, longest_text(forward)):
        draw_missing_positions(context, scheme, CANNOT)
        return None
    order = _choose_order(forward)
    if order is None:
        return None
    permutation = cached(
        opened,
        ("permuted", forward.text, forward.pair, tuple(order), scheme),
        lambda: permuted(opened, forward, order, scheme),
        lambda result: result.before.bytes + result.after.bytes,
    )
    own = opened.config.positions
    st.markdown(f"**{_verdict(permutation)}**")
    _draw_outputs(permutation)
    _draw_maps(permutation, context)
    chips([forward.tokens[place] for place in order], key="new_order")
    same = f" {SAME_ANSWER}" if permutation.before.answer.kind == "text" else ""
    st.caption(_reason(permutation, scheme, own) + same)
    tokens = permutation.before.tokens
    st.markdown("**Change in each token's final vector**")
    table(
        {
            "token": texts(tokens),
            "from position": [str(at) for at in range(len(tokens))],
            "to position": [str(at) for at in permutation.places],
            "change": [percent(float(change)) for change in permutation.changes],
        }
    )
    widgets.notes(forward.notes)
    return script(order_code, opened, forward, order, scheme, *at.place)


def _choose_order(forward: ForwardPass) -> list[int] | None:
    """The former position of the token at every position; None for an invalid custom order."""
    how = one_of("order_of", (REVERSED, SWAP, CUSTOM))
    if how == REVERSED:
        return reversed_order(forward)
    last = len(forward.tokens) - 1
    if how == SWAP:
        places = widgets.side_by_side(1, 1, 2)
        ordinary = [at for at in range(last + 1) if not forward.tokens[at].special] or [0]
        with places[0]:
            first = token("swap_one", forward.tokens, ordinary[0])
        with places[1]:
            second = token("swap_other", forward.tokens, ordinary[-1])
        return swapped_order(forward, first, second)
    in_order = " ".join(map(str, range(last + 1)))
    usual = in_order if len(in_order) <= TEXT_LIMIT else ""
    follow("places", usual)
    typed = text_field("places", usual)
    named = [int(place) for place in re.findall(r"\d{1,5}", typed)]
    if sorted(named) == list(range(last + 1)):
        return named
    say(
        f"“{cut(typed or '', 30)}” is not a permutation of {last + 1:,} tokens: name each "
        f"position from 0 to {last:,} once, with spaces between them."
    )
    return None


def _verdict(permutation: Permutation) -> str:
    if permutation.order == tuple(sorted(permutation.order)):
        return "The order is the same, so nothing changes."
    if math.isnan(permutation.largest):
        return NO_VALUES
    if permutation.largest < PERMUTATION_ROUNDING:
        return "Only the order changes: the final vector of every token stays the same."
    change = percent(permutation.largest)
    return (
        f"The order affects the output: the final vectors change by up to {change} of their norm."
    )


def _reason(permutation: Permutation, scheme: str, own: str) -> str:
    """How the order enters the model."""
    ways = ["its positions"] if scheme != "none" else []
    if permutation.stack == "decoder":
        ways.append("its causal mask, by which a token attends only to itself and those before it")
    weights = "with its own scheme" if scheme == own else "with another scheme than in training"
    intro = f"The model's own weights {weights} ({SCHEMES[scheme]})."
    if ways:
        return f"{intro} The order enters through {' and '.join(ways)}."
    if not permutation.largest < PERMUTATION_ROUNDING:  # a window or a segment also knows places
        return intro
    return (
        f"{intro} Without positions and without a causal mask no token can know its position; the "
        f"largest change is {three(permutation.largest)}, which is rounding."
    )


def _draw_maps(permutation: Permutation, context: PageContext) -> None:
    """The chosen head in both orders, the new one sorted back; the difference."""
    at = context.choice
    before = permutation.before.weights(*at.place)
    after = permutation.put_back(*at.place)
    mask, mask_after = permutation.masks(at.part, at.layer)
    change = after - before
    title = head_title(context.called, *at.place)
    titles = {
        f"Original order · {title}": (before, mask),
        "New order, every token back in its place": (after, mask_after),
        "Difference": (change, mask | mask_after),
    }
    of_change: dict[str, Any] = {
        "scale": "diverging",
        "sentence": "{row}, {column}: {value}",
        "unit": "change",
        "top": max(float(change.abs().max()), LEAST_SCALE),
    }
    for number, (place, (title, (values, allowed))) in enumerate(
        zip(widgets.side_by_side(1, 1, 1), titles.items(), strict=True)
    ):
        with place:
            widgets.draw_weights(
                permutation.before,
                at.part,
                values,
                f"order_map_{number}",
                title,
                allowed=allowed,
                **(of_change if values is change else {}),
            )


def _draw_outputs(permutation: Permutation) -> None:
    passes = {"Original order": permutation.before, "New order": permutation.after}
    for place, (title, forward) in zip(widgets.side_by_side(1, 1), passes.items(), strict=True):
        answer, guesses = forward.answer, forward.answer.guesses[:3]
        best = ", ".join(f"{guess.label} {three(guess.score)}" for guess in guesses)
        says = answer.text if answer.kind == "text" else best
        place.text(f"{title}: {says or answer.note or widgets.ENDS_IN_VECTORS}")


def order_code(
    opened: OpenModel,
    forward: ForwardPass,
    order: list[int],
    scheme: str,
    part: str,
    layer: int,
    head: int,
) -> None:
    permutation = permuted(opened, forward, order, scheme)
    before = permutation.before.weights(part, layer, head)
    weights = permutation.put_back(part, layer, head)  # with every token where it was
    print(before, weights, permutation.changes)


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
    where = head_title(context.called, result.part, result.layer, at.head)
    _draw_curves(result, context.called, where)
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
    titles = [f"{where}: how many tokens each query reads", f"{model} · Loss on each next token"]
    values = [(result.effective_keys, "tokens", "e to the entropy of its weights")]
    if result.nats is not None:
        values.append((result.nats, "nats", "−ln of the probability of the next token"))
    for place, title, (numbers, unit, formula) in zip(places, titles, values, strict=False):
        with place:
            st.markdown(widgets.bold_title(title))
            spec = position_curve(numbers.tolist(), result.trained, unit)
            chart(spec, height=WINDOW, key=f"extrapolated_{unit}", title=title)
            inside, beyond = map(three, result.halves(numbers))
            st.caption(
                f"On average {inside} {unit} up to position {result.trained - 1}, {beyond} beyond "
                f"({formula})."
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
