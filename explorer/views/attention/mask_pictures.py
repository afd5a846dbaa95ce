"""The masks of a forward pass, and one head from its scores to its weights."""

from typing import Any

import streamlit as st
from torch import Tensor

from explorer.app.context import PageContext
from explorer.app.messages import or_stop
from explorer.catalog.opened_model import OpenModel
from explorer.components.matrix import matrix
from explorer.inference import mask_examples
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.mask_examples import Masks, Pictures, padded
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from models.masking import causal_mask


def draw_mask_example(context: PageContext, example: str) -> Script:
    """Draw the masks of this example, and what they do to the chosen head; return the code."""
    if example == mask_examples.STUDENT:
        draw_masks(mask_examples.student(), None, example)
        return script(student_code)
    at, forward = context.choice, context.forward
    is_batch = example == mask_examples.BATCH
    if is_batch:
        forward = or_stop(lambda: padded(context.opened, context.forward))[-1]
    pictures = mask_examples.pictures(forward, *at.place)
    draw_masks(mask_examples.of(forward, at.part, at.layer), pictures, widgets.head_title(context))
    if pictures.adds_bias:
        st.caption("The scores include the bias that positions add.")
    if is_batch and at.pair:
        st.text("The second sentence is left out of the batch.")
    widgets.notes(forward.notes)
    lines = script(masks_code, context.forward, *at.place)
    return script(batch_code, context.opened, context.forward) + lines if is_batch else lines


def draw_masks(masks: Masks, head: Pictures | None, of: str) -> None:
    """The mask that masks most large, the other two beside it; then a head's scores and weights.

    `of` begins the titles of the exported figures.
    """
    pictures: list[tuple[str, Tensor, str, dict[str, Any]]] = [
        (masks.ahead, masks.causal, "mask_causal", {"scale": "mask"}),
        ("Both combined", masks.both, "mask_both", {"scale": "mask"}),
        ("Padding mask", masks.padding, "mask_padding", {"scale": "mask"}),
    ]
    if not masks.padding.all():
        pictures[:2] = pictures[1::-1]
    if head is not None:
        what = "Scores with position bias" if head.adds_bias else "Scores"
        signed = {"scale": "diverging", "unit": "score", "top": float(head.scores.abs().max())}
        has_masked_rows = not masks.both.any(-1).all()
        sums = "Weights: rows sum to 1" + (", fully masked rows to 0" if has_masked_rows else "")
        pictures += [
            (what, head.scores, "scores", signed),
            (f"{what}, masked", head.scores, "masked", {"allowed": masks.both, **signed}),
            (sums, head.weights, "weights", {"allowed": masks.both, "top": 1.0}),
        ]
    labels = masks.rows, masks.columns
    for shares, row in ((2, 1, 1), pictures[:3]), ((1, 1, 1), pictures[3:]):
        places = widgets.side_by_side(*shares) if row else []
        for place, (title, values, key, how) in zip(places, row, strict=True):
            with place:
                matrix(values, *labels, key=key, title=f"{of} · {title}", heading=title, **how)


def student_code() -> None:
    mask = causal_mask(5)[0, 0]
    print(mask)  # True = may attend


def batch_code(opened: OpenModel, forward: ForwardPass) -> None:
    forward = padded(opened, forward)[-1]  # its beginning, in one batch with the whole


def masks_code(forward: ForwardPass, part: str, layer: int, head: int) -> None:
    scores = forward.scores(part, layer, head)
    bias = forward.bias(part, layer, head)  # of the positions
    scores = scores if bias is None else scores + bias
    mask = forward.mask(part, layer)  # True = may attend
    weights = forward.weights(part, layer, head)
    print(scores, mask, weights)
