"""Direct logit attribution on screen: what each head and feed-forward layer adds to one logit."""

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.logit_attribution import Contributions, contributions
from explorer.analysis.logit_lens import lens_logits
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.components.picker import cells
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.text.number_format import three
from explorer.views.logit_lens.layer_predictions import option_text
from explorer.views.shared import widgets

OPTIONS = 12
FEED_FORWARD = "feed-forward"
CROSS = "decoder.cross_attn"


def draw_logit_attribution(context: PageContext, position: int, logits: Tensor) -> int:
    """One cell per head and feed-forward layer; beside it the sums that give the logit.

    `logits` (options,) are the pass's own. Gives the index of the token or class.
    """
    opened, at = context.opened, context.choice
    best = logits.topk(min(OPTIONS, len(logits))).indices.tolist()
    names = [f"{option_text(opened, option)} ({option})" for option in best]
    picked = one_of("logit_of", names, as_list=True, width=320)
    option, forward = best[names.index(picked)], context.forward
    found = kept(
        opened,
        ("contributions", at.text, at.pair, position, option),
        lambda: contributions(forward, position, option),
        lambda made: made.feed_forward.nbytes + sum(h.nbytes for h in made.heads.values()),
    )
    drawn, numbers = widgets.side_by_side(6, 4)
    with drawn:
        title = f"{at.called} · Direct logit attribution of “{names[best.index(option)]}”"
        _draw_contributions(found, at.part, (at.layer, at.head), title)
    with numbers:
        st.markdown("**Sum**")
        rows = sums(found)
        st.dataframe(
            {"what": list(rows), "logits": [three(value) for value in rows.values()]},
            hide_index=True,
            column_config={"logits": st.column_config.TextColumn(alignment="right")},
        )
        logit = three(found.logit)
        source = (
            f"Logit of the forward pass: {logit}"
            if found.in_pass
            else f"Logit from the last residual stream: {logit}"
        )
        st.caption(
            f"{source}; the sum differs from it by {three(found.difference)}. Biases: β of the "
            "norms, W_O and the head."
        )
    return option


def sums(found: Contributions) -> dict[str, float]:
    """What adds up to the logit, in the order it enters the residual stream."""
    heads = {
        f"all heads{' of cross-attention' if part == CROSS else ''}": float(values.sum())
        for part, values in found.heads.items()
    }
    return {
        **{f"embedding: {name}": value for name, value in found.embedding.items()},
        **heads,
        "all feed-forward layers": float(found.feed_forward.sum()),
        "biases": found.constant,
        "logit": found.total,
    }


def _draw_contributions(
    found: Contributions, part: str, chosen: tuple[int, int], title: str
) -> None:
    values = torch.cat([*found.heads.values(), found.feed_forward[:, None]], 1)
    layers = [str(layer) for layer in range(len(values))]
    heads = [(kind, head) for kind in found.heads for head in range(found.heads[kind].shape[1])]
    names = [f"{'cross-attention ' if kind == CROSS else ''}head {head}" for kind, head in heads]
    short = [f"{'x' if kind == CROSS else ''}{head}" for kind, head in heads]
    layer, head = chosen

    def pick(layer: int, column: int) -> None:
        if column < len(heads):
            kind, head = heads[column]
            choose_head(layer, head, kind)

    cells(
        values,
        layers,
        [*names, FEED_FORWARD],
        key="made_of",
        title=title,
        selected=(layer, heads.index((part, head))) if (part, head) in heads else None,
        on_pick=pick,
        column_name="part",
        sentence="Layer {row}, {column}: {value}",
        unit="logits",
        scale="diverging",
        written=(layers, [*short, "FF"]),
    )
    cross = "; x is cross-attention" if CROSS in found.heads else ""
    st.caption(f"Heads by number, FF is the feed-forward layer{cross}. Click a head to select it.")


def lens_code(forward: ForwardPass, position: int, option: int) -> None:
    logits = lens_logits(forward.trace, position)
    print(logits.softmax(-1).topk(min(5, logits.shape[-1])))  # a row per residual stream

    found = contributions(forward, position, option)
    print(found.heads, found.feed_forward, found.embedding, found.constant)
    print(found.total, found.logit)
