"""What one logit is made of, on the screen: every head and block, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.logit_attribution import Contributions, contributions
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.app.sidebar import choose_head
from explorer.catalog.opened_model import Opened
from explorer.components.cells import cells
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.text.number_format import three
from explorer.views.shared import widgets

OPTIONS = 12
FEED_FORWARD = "feed-forward"
SHORT = {"encoder.self_attn": "", "decoder.self_attn": "", "decoder.cross_attn": "x"}
LONG = {**SHORT, "decoder.cross_attn": "cross-attention "}


def show(
    opened: Opened, forward: ForwardPass, place: int, logits: Tensor, named: Callable[[int], str]
) -> int:
    """One cell for every head and feed-forward layer; beside it the sum, ending in the logit.

    Gives the number of the word or class whose logit it is.
    """
    best = logits.topk(min(OPTIONS, len(logits))).indices.tolist()
    names = [f"{named(option)} ({option})" for option in best]
    picked = one_of("The logit of", "logit_of", names, as_list=True, width=320)
    option, at = best[names.index(picked)], page_context().choice
    found = kept(
        opened,
        ("contributions", at.text, at.pair, place, option),
        lambda: contributions(forward, place, option),
        lambda made: made.feed_forward.nbytes + sum(h.nbytes for h in made.heads.values()),
    )
    drawn, numbers = widgets.side_by_side(6, 4)
    with drawn:
        _table(found, at.part, (at.layer, at.head))
    with numbers:
        st.markdown("**Together**")
        st.dataframe(
            {"what": list(rows := sums(found)), "logits": [three(v) for v in rows.values()]},
            hide_index=True,
            column_config={"logits": st.column_config.TextColumn(alignment="right")},
        )
        whose = (
            f"The pass gave {three(found.logit)}"
            if found.in_pass
            else "The pass scored no word here; the head makes "
            f"{three(found.logit)} of its last stream"
        )
        st.caption(f"{whose}; the sum of all parts differs from it by {three(found.difference)}.")
    return option


def sums(found: Contributions) -> dict[str, float]:
    """What is added up to the logit, in the order it enters the stream."""
    heads = {
        f"all heads{' of cross-attention' if 'cross' in part else ''}": float(values.sum())
        for part, values in found.heads.items()
    }
    return {
        **{f"embedding: {name}": value for name, value in found.embedding.items()},
        **heads,
        "all feed-forward layers": float(found.feed_forward.sum()),
        "β of the norms, biases of W_O and the head": found.constant,
        "logit": found.total,
    }


def _table(found: Contributions, part: str, chosen: tuple[int, int]) -> None:
    kinds = list(found.heads)
    values = torch.cat([*found.heads.values(), found.feed_forward[:, None]], 1)
    layers = [str(layer) for layer in range(len(values))]
    heads = [(kind, head) for kind in kinds for head in range(found.heads[kind].shape[1])]
    here = (part, chosen[1])

    def pick(layer: int, column: int) -> None:
        if column < len(heads):
            kind, head = heads[column]
            st.session_state["part"] = kind
            choose_head(layer, head)

    cells(
        values,
        layers,
        [*(f"{LONG[kind]}head {head}" for kind, head in heads), FEED_FORWARD],
        key="made_of",
        selected=(chosen[0], heads.index(here)) if here in heads else None,
        on_pick=pick,
        column_name="part",
        sentence="Layer {row}, {column}: {value}",
        unit="logits",
        scale="diverging",
        written=(layers, [*(f"{SHORT[kind]}{head}" for kind, head in heads), "FF"]),
    )
    said = "; x stands for cross-attention" if len(kinds) > 1 else ""
    st.caption(
        f"Heads by their number, FF for the feed-forward layer{said}. Click a head to choose it."
    )
