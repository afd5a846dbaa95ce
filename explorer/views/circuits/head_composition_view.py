"""With which earlier heads a head composes: one cell each, by what it reads of them."""

import streamlit as st
from torch import Tensor

from explorer.analysis.circuits.head_at_work import composition_of
from explorer.analysis.head_composition import READS, unrelated
from explorer.app.choosing import choose_head
from explorer.app.controls import one_of
from explorer.catalog.opened_model import Opened
from explorer.components.picker import cells
from explorer.text.number_format import three

NAMES = tuple(each.upper() for each in READS)
HEIGHT, STRONGEST = 260, 3
FIRST_LAYER = "No layer comes before this one, so this head composes with none."


def draw_composition(opened: Opened, layer: int, head: int) -> None:
    """Every earlier head by one of its three scores; a click chooses one."""
    st.markdown("**Composition with earlier heads**")
    if layer == 0:
        st.caption(FIRST_LAYER)
        return
    by_read = composition_of(opened, layer, head) / unrelated(opened.config.d_model)
    said = one_of("composed_by", NAMES, "K", label_visibility="collapsed")
    shown = by_read[NAMES.index(said)]
    cells(
        shown.mT,
        *([str(number) for number in range(count)] for count in shown.mT.shape),
        key="composition",
        title=f"{said}-composition of layer {layer}, head {head} with every earlier head",
        selected=None,
        on_pick=lambda head, layer: choose_head(layer, head),
        row_name="head",
        column_name="layer",
        sentence="Layer {column}, head {row}: {value}",
        unit="× unrelated",
        height=HEIGHT,
    )
    strongest = (f"{NAMES[at]} {_strongest(each)}" for at, each in enumerate(by_read))
    st.caption(
        f"Strongest: {'; '.join(strongest)}. ‖W_QKᵀ W_OV‖ / ‖W_QK‖ ‖W_OV‖ and its like, in units "
        "of 1 / √d_model, that of two unrelated heads: by weights alone, so what could be read."
    )


def _strongest(scores: Tensor) -> str:
    """The heads with the largest scores (layers, heads), such as 21.5 (1.61 ×)."""
    values, places = scores.flatten().topk(min(STRONGEST, scores.numel()))
    heads = scores.shape[1]
    return ", ".join(
        f"{place // heads}.{place % heads} ({three(value)} ×)"
        for value, place in zip(values.tolist(), places.tolist(), strict=True)
    )
