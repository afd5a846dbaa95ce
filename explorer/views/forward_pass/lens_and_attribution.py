"""The logit lens and direct logit attribution on screen, for the output of one position."""

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.logit_attribution import Contributions, contributions
from explorer.analysis.logit_lens import lens_logits, ranks_by_layer
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.catalog.open_model import OpenModel
from explorer.charts.bars import probability_bars
from explorer.components.chart import chart
from explorer.components.picker import cells
from explorer.inference.answers import option_name
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.text.literal import literal
from explorer.text.number_format import three
from explorer.text.token_labels import text_of
from explorer.views.shared import widgets

PREDICTIONS_SHOWN = 5
BAR = 28
LAYERS_WIDTH = 560


def draw_layer_predictions(opened: OpenModel, logits: Tensor) -> None:
    """One row per layer of (layers + 1, options); then the output's probability and rank."""
    steps = ["embedding", *(f"layer {n}" for n in range(len(logits) - 1))]
    probabilities, output = logits.double().softmax(-1), int(logits[-1].argmax())
    kind = "classes" if opened.config.head == "classifier" else "tokens"
    st.markdown(f"**Likeliest {kind} after each layer**")
    best = probabilities.topk(min(PREDICTIONS_SHOWN, logits.shape[-1]), -1)
    columns = {
        f"{rank + 1}.": [
            f"{option_text(opened, index)}  {three(value)}"
            for index, value in zip(indices, values, strict=True)
        ]
        for rank, (indices, values) in enumerate(
            zip(best.indices.T.tolist(), best.values.T.tolist(), strict=True)
        )
    }
    height = 38 + 35 * min(len(steps), 16)
    st.dataframe({"after": steps, **columns}, hide_index=True, height=height)
    with st.container(width=LAYERS_WIDTH):
        st.markdown(f"**Output: {literal(option_text(opened, output))}**")
        ranks = ranks_by_layer(logits, output)
        labels = [f"{step} · rank {rank}" for step, rank in zip(steps, ranks, strict=True)]
        spec = probability_bars(labels, probabilities[:, output].tolist())
        title = f"Probability of {option_text(opened, output)} after each layer"
        chart(spec, height=BAR * len(steps) + 30, key="way", title=title)
        st.caption(
            f"Its probability after each layer, and its rank among all {kind}. In the forward pass "
            "the output head reads the last layer alone: what it makes of earlier ones need not be "
            "what the model would say there."
        )


def option_text(opened: OpenModel, index: int) -> str:
    """What a token or a class is called in tables."""
    name = option_name(opened, index)
    return name if opened.config.head == "classifier" else text_of(name)


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
