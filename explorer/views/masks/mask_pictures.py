"""The masks of a forward pass, and one head from its scores to its weights."""

from __future__ import annotations

from typing import Any

import streamlit as st
from torch import Tensor

from explorer.components import matrix
from explorer.inference.mask_parts import Masks, Pictures
from explorer.views.shared.widgets import SMALL_HEIGHT, SMALL_WIDTH


def draw_masks(masks: Masks, head: Pictures | None, of: str) -> None:
    """What padding masks, what causality masks and both; then the scores and weights of a head.

    `of` says whose they are, where they are exported.
    """
    with st.container(horizontal=True, gap="small"):
        _draw(masks, of, "Padding mask", masks.padding, "mask_padding", scale="mask")
        _draw(masks, of, masks.ahead, masks.causal, "mask_causal", scale="mask")
        _draw(masks, of, "Both combined, as in the model", masks.both, "mask_both", scale="mask")
        if head is None:
            return
        what = "Scores with position bias" if head.adds_bias else "Scores"
        signed: dict[str, Any] = {"scale": "diverging", "unit": "score"}
        signed["top"] = float(head.scores.abs().max())
        _draw(masks, of, what, head.scores, "scores", **signed)
        _draw(masks, of, f"{what}, masked", head.scores, "masked", allowed=masks.both, **signed)
        has_masked_rows = not masks.both.any(-1).all()
        title = "Weights: rows sum to 1" + (", fully masked rows to 0" if has_masked_rows else "")
        _draw(masks, of, title, head.weights, "weights", allowed=masks.both, top=1.0)


def _draw(masks: Masks, of: str, title: str, values: Tensor, key: str, **how: Any) -> None:
    with st.container(width=SMALL_WIDTH):
        st.markdown(f"**{title}**")
        name = f"{of} · {title}"
        matrix(values, masks.rows, masks.columns, key=key, height=SMALL_HEIGHT, title=name, **how)
