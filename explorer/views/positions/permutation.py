"""The sentence in another order, really passed: what a model without positions does not see."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import streamlit as st

from explorer.analysis.position_experiments import (
    Moved,
    backwards,
    can_have,
    longest,
    moved,
    swapped,
)
from explorer.analysis.position_schemes import SCHEMES
from explorer.app import url
from explorer.app.context import TEXT_LIMIT, page_context
from explorer.app.controls import follow, one_of, token
from explorer.app.messages import say
from explorer.catalog.entries import Opened
from explorer.components import chips, matrix
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.snippets import positions_code as snippets
from explorer.text.labels import cut
from explorer.text.number_format import three
from explorer.text.token_labels import text_of
from explorer.views.positions.missing_positions import CANNOT, missing
from explorer.views.shared import widgets

SWAP, BACKWARDS, OWN = "Swap two tokens", "Backwards", "My own order"
NOTHING = 1e-4
"""A change of a vector below this share of it is the rounding of single precision."""
LEAST = 0.01
"""The colours of a difference end at no less, or rounding would look like a change."""
AROUND, LARGEST_CELL = 130, 30
NO_VALUES = "The last vectors hold no values, so what changes cannot be told."
WRITES = (
    "The likeliest word at every step. Both times the decoder is given the answer that the model "
    "wrote to your sentence, so that the steps can be compared."
)


def order(opened: Opened, name: str) -> Callable[[], str] | None:
    """The text passed twice in this scheme, what became of every token, and the lines of it."""
    forward = page_context().forward
    if not can_have(opened.model, name, longest(forward)):
        missing(name, CANNOT)
        return None
    wanted = _order(forward)
    if wanted is None:
        return None
    found = kept(
        opened,
        ("moved", forward.text, forward.pair, tuple(wanted), name),
        lambda: moved(opened, forward, wanted, name),
        lambda made: made.before.bytes + made.after.bytes,
    )
    chips([forward.tokens[place] for place in wanted], key="new_order")
    st.markdown(f"**{_verdict(found)}**")
    st.caption(_why(found, name, opened.config.positions))
    _maps(found)
    _table(found)
    widgets.notes(forward.notes)
    at, own, folder = page_context().choice, opened.config.positions, page_context().folder
    return lambda: snippets.order(found, folder, name, own, (at.part, at.layer, at.head))


def _order(forward: ForwardPass) -> list[int] | None:
    """The former place of the token at every place; None where what was typed is no order."""
    how = one_of("Order", "order_of", (BACKWARDS, SWAP, OWN))
    if how == BACKWARDS:
        return backwards(forward)
    last = len(forward.tokens) - 1
    if how == SWAP:
        places = widgets.side_by_side(1, 1, 2)
        typed = [at for at, each in enumerate(forward.tokens) if not each.special] or [0]
        with places[0]:
            first = token("One token", "swap_one", forward.tokens, typed[0])
        with places[1]:
            second = token("The other", "swap_other", forward.tokens, typed[-1])
        return swapped(forward, first, second)
    as_they_stand = " ".join(map(str, range(last + 1)))
    usual = as_they_stand if len(as_they_stand) <= TEXT_LIMIT else ""
    follow("places", usual)
    written = st.text_input(
        "Places in their new order",
        usual,
        **url.bound("places"),
        max_chars=TEXT_LIMIT,
    )
    named = [int(place) for place in re.findall(r"\d{1,5}", written or "")]
    if sorted(named) == list(range(last + 1)):
        return named
    say(
        f"“{cut(written or '', 30)}” is no order of {last + 1:,} tokens: name each place from 0 to "
        f"{last:,} once, with spaces between them."
    )
    return None


def _verdict(found: Moved) -> str:
    if found.order == tuple(sorted(found.order)):
        return "The tokens stand where they stood, so nothing changes."
    if math.isnan(found.largest):
        return NO_VALUES
    if found.largest < NOTHING:
        return "Nothing changes but the order: every token's last vector is what it was."
    change = _share(found.largest)
    return f"The pass sees the order: the last vectors change by up to {change} of their length."


def _share(part: float) -> str:
    return three(part) if math.isnan(part) else f"{three(100 * part)} %"


def _why(found: Moved, name: str, own: str) -> str:
    """Where the order gets in."""
    told = name != "none"
    causal = found.stack == "decoder"
    ways = ["its positions"] * told + [
        "its causal mask, which lets a token see those before it"
    ] * causal
    whose = "The model's own scheme" if name == own else "Not the scheme it was trained with"
    scheme = f"{whose} ({SCHEMES[name]}), its own weights."
    if not ways and math.isnan(found.largest):
        return scheme
    if not ways:
        return (
            f"{scheme} Without positions and without a causal mask no token can know where it "
            f"stands; the largest change is {three(found.largest)}, which is rounding."
        )
    return f"{scheme} The order gets in by {' and '.join(ways)}."


def _maps(found: Moved) -> None:
    """The chosen head before, after with every token put back, and the difference."""
    at = page_context().choice
    before = found.before.weights(at.part, at.layer, at.head)
    after = found.put_back(at.part, at.layer, at.head)
    rows, columns = found.before.rows(at.part), found.before.columns(at.part)
    words = found.before.part(at.part).words
    may, may_then = found.allowed(at.part, at.layer)
    change = after - before
    titles = {
        f"Layer {at.layer}, head {at.head} as it was": (before, may),
        "In the new order, tokens put back": (after, may_then),
        "Difference": (change, may | may_then),
    }
    for number, (place, (title, (values, allowed))) in enumerate(
        zip(widgets.side_by_side(1, 1, 1), titles.items(), strict=True)
    ):
        is_change = values is change
        with place:
            st.markdown(f"**{title}**")
            matrix(
                values,
                rows,
                columns,
                key=f"order_map_{number}",
                allowed=allowed,
                row_name=words.row,
                column_name=words.column,
                scale="diverging" if is_change else "sequential",
                sentence="{row}, {column}: {value}" if is_change else words.cell,
                unit="change" if is_change else "weight",
                height=min(widgets.SMALL_HEIGHT, AROUND + LARGEST_CELL * len(rows)),
                top=max(float(change.abs().max()), LEAST) if is_change else 1.0,
            )


def _table(found: Moved) -> None:
    """Every token: where it stood, where it stands, and how much its last vector changed."""
    left, right = widgets.side_by_side(1, 1)
    tokens = found.before.tokens
    with left:
        st.markdown("**What became of each token**")
        st.dataframe(
            {
                "token": [text_of(each) for each in tokens],
                "from place": [str(at) for at in range(len(tokens))],
                "to place": [str(at) for at in found.places],
                "its last vector changed by": [_share(float(each)) for each in found.changes],
            },
            hide_index=True,
            height=min(420, 38 + 35 * len(tokens)),
        )
    with right:
        answers = {"Its answer before": found.before, "In the new order": found.after}
        for title, forward in answers.items():
            st.markdown(f"**{title}**")
            _answer(forward)
        if found.before.answer.kind == "text":
            st.caption(WRITES)


def _answer(forward: ForwardPass) -> None:
    """What the model makes of it, in a few lines."""
    guesses = forward.answer.guesses[:3]
    if forward.answer.kind == "text":
        st.text(forward.answer.text)
    elif guesses:
        said = ", ".join(f"{guess.label} {three(guess.probability)}" for guess in guesses)
        st.text(said)
    else:
        st.text(forward.answer.note or widgets.ENDS_IN_VECTORS)
