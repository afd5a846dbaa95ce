"""The parts of a screen that several pages share: how it opens, the answer, the code panel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.app.context import page_context
from explorer.app.session import session
from explorer.charts.bars import probability_bars
from explorer.components import chips, matrix, mounting
from explorer.components.matrix import room
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.mask_parts import Masks, Pictures
from explorer.snippets import source
from explorer.text.literal import literal

MATRIX_HEIGHT = 520
SMALL_WIDTH, SMALL_HEIGHT = 384, 370
"""A sentence of ten tokens keeps all its labels; side by side as far as the screen allows."""

WIDEST = 1160
"""A picture and what stands beside it belong together, also on a wide screen."""

WAYS = {
    "overview": "What it looks at",
    "tokens": "From letters to tokens",
    "tokenizer_training": "How a vocabulary is learnt",
    "positions": "How order gets in",
    "attention": "Every head of every layer",
    "masks": "Who may look at whom",
    "training": "Train one, and watch",
    "checkpoints": "Other models",
}

EXPECTS = {
    "next": "The model expects next",
    "mask": "The model expects behind the mask",
    "classes": "The model decides",
}

ENDS_IN_VECTORS = "This model gives no answer: it ends in vectors, one for each token."


def opening(title: str, sentence: str, *, takes_away: bool = False) -> None:
    """A page opens with its name and one sentence that says what one sees.

    Of a page whose views can be taken away they are remembered.
    """
    mounting.begin(takes_away)
    st.title(title, anchor=False)
    st.markdown(sentence)


def side_by_side(*shares: int) -> list[DeltaGenerator]:
    """Columns that do not drift apart on a wide screen."""
    return st.container(width=WIDEST).columns(shares, gap="medium")


def notes(sentences: Iterable[str]) -> None:
    """What a reader should know about what is on screen."""
    for sentence in sentences:
        st.text(sentence)


def one_head(forward: ForwardPass, key: str, height: int = MATRIX_HEIGHT) -> None:
    """The chosen head, large: queries down, keys across."""
    at = page_context().choice
    words = forward.part(at.part).words
    rows, columns = forward.rows(at.part), forward.columns(at.part)
    matrix(
        forward.weights(at.part, at.layer, at.head),
        rows,
        columns,
        key=key,
        allowed=forward.mask(at.part, at.layer),
        row_name=words.row,
        column_name=words.column,
        sentence=words.cell,
        height=room(len(rows), len(columns), height),
        top=1.0,
    )


def masks(shown: Masks, made: Pictures | None) -> None:
    """Where the mask of a pass comes from; then one head from its scores to its weights."""
    with st.container(horizontal=True, gap="small"):
        _masked(shown, "Padding: no one looks at filler", shown.padding, "mask_padding", "mask")
        _masked(shown, shown.ahead, shown.causal, "mask_causal", "mask")
        _masked(shown, "Both: what the model uses", shown.both, "mask_both", "mask")
        if made is None:
            return
        what = "Scores with the bias of the distance" if made.adds_bias else "Scores"
        signed: dict[str, Any] = {"scale": "diverging", "unit": "score"}
        signed["top"] = float(made.scores.abs().max())
        under: dict[str, Any] = {"allowed": shown.both}
        _masked(shown, what, made.scores, "scores", **signed)
        _masked(shown, "The same under the mask", made.scores, "masked", **signed, **under)
        blind = not shown.both.any(-1).all()
        title = "Weights: each row sums to 1" + (
            ", but for those that see nothing" if blind else ""
        )
        _masked(shown, title, made.weights, "weights", top=1.0, **under)


def _masked(
    shown: Masks, title: str, values: Tensor, key: str, scale: str = "sequential", **more: Any
) -> None:
    with st.container(width=SMALL_WIDTH):
        st.markdown(f"**{title}**")
        labels = shown.rows, shown.columns
        matrix(values, *labels, key=key, scale=scale, height=SMALL_HEIGHT, **more)


def answer(forward: ForwardPass, key: str = "answer") -> None:
    """What the model makes of the sentence."""
    kind, guesses = forward.answer.kind, forward.answer.guesses
    if kind == "text" and (forward.written or forward.answer.text):
        st.markdown("**The model writes**")
        if forward.written:
            chips(forward.written, key=key)
        else:
            st.text(forward.answer.text)
        notes([forward.answer.note] if forward.answer.note else [])
        return
    if kind == "mask" and not guesses:
        st.text(forward.answer.note)
        return
    if not guesses:
        st.text(ENDS_IN_VECTORS)
        return
    st.markdown(f"**{EXPECTS[kind]}**")
    if kind != "classes":
        st.caption(f"The {len(guesses)} likeliest tokens. {literal(forward.answer.note)}")
    labels = [guess.label for guess in guesses]
    spec = probability_bars(labels, [guess.probability for guess in guesses])
    st.vega_lite_chart(spec, width="stretch", height=28 * len(guesses) + 30, key=key)


def ways_on(*names: str) -> None:
    """Links to other pages. A page that is run alone has none to go to."""
    for name in names:
        page = session().pages.get(name)
        if page is not None:
            st.page_link(page, label=WAYS[name], icon=":material/arrow_forward:")


def code(
    *functions: Callable[..., Any],
    pasted: Callable[[], str] | None = None,
    label: str = "The code that computes this",
) -> None:
    """Lines that make what is on screen when pasted, and the core's own functions behind it.

    Closed, and not even sent, until somebody wants to read them.
    """
    with st.expander(label, key="code", on_change="rerun") as panel:
        if not panel.open:
            return
        if pasted is not None:
            st.caption("Run this in the folder of the README:")
            st.code(pasted(), language="python")
        for function in functions:
            found = source.excerpt(function)
            st.caption(f"`{found.path}`, line {found.line}")
            st.code(found.code, language="python")
