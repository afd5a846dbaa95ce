"""Who may look at whom, and what a mask does to the scores of the chosen head."""

import streamlit as st

from explorer import masks, session, widgets
from explorer.components import matrix
from models import masking
from models.attention import attention_weights

HEIGHT = 330

widgets.opening(
    "Masks",
    "A mask says who may look at whom: a hatched cell is forbidden, and its score "
    "is taken out before the weights are made.",
)
at, opened = session.choice(), session.opened()
example = st.segmented_control(
    "Example",
    list(masks.EXAMPLES),
    default=masks.BATCH,
    key="example",
    required=True,
    bind="query-params",
)
if example == masks.STUDENT:
    shown, reading = masks.student(), None
else:
    reading = session.reading_of_text()
    if example == masks.BATCH:
        whole = reading
        reading = session.or_say(lambda: masks.batch(opened, whole))
    shown = masks.of(reading, at.part)
st.caption(masks.EXAMPLES[example])


def draw(column, title, values, key, **more):  # type: ignore[no-untyped-def]
    with column:
        st.markdown(f"**{title}**")
        matrix(values, shown.rows, shown.columns, key=key, height=HEIGHT, **more)


first, second, third = st.columns(3, gap="medium")
draw(first, "Padding: no one looks at filler", shown.padding, "mask_padding", scale="mask")
ahead = "no one looks ahead" if not shown.causal.all() else "nothing lies ahead here"
draw(second, f"Causal: {ahead}", shown.causal, "mask_causal", scale="mask")
draw(third, "Both: what the model uses", shown.both, "mask_both", scale="mask")

if reading is not None:
    scores = reading.scores(at.part, at.layer, at.head)
    weights = reading.weights(at.part, at.layer, at.head)
    first, second, third = st.columns(3, gap="medium")
    top = float(scores.abs().max())
    draw(first, "Scores", scores, "scores", scale="diverging", unit="score", top=top)
    draw(
        second,
        "Scores under the mask",
        scores,
        "masked",
        scale="diverging",
        unit="score",
        top=top,
        allowed=shown.both,
    )
    draw(third, "Weights: each row sums to 1", weights, "weights", allowed=shown.both, top=1.0)
widgets.code(masking.causal_mask, masking.padding_mask, attention_weights)
