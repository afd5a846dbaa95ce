"""The logit lens on screen: the likeliest tokens after each layer, and how the output forms."""

import streamlit as st
from torch import Tensor

from explorer.analysis.logit_lens import ranks_by_layer
from explorer.catalog.opened_model import Opened
from explorer.charts.bars import probability_bars
from explorer.components.chart import chart
from explorer.inference.answers import option_name
from explorer.text.literal import literal
from explorer.text.number_format import three
from explorer.text.token_labels import text_of

PREDICTIONS_SHOWN = 5
BAR = 28
LAYERS_WIDTH = 560


def draw_layer_predictions(opened: Opened, logits: Tensor) -> None:
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


def option_text(opened: Opened, index: int) -> str:
    """What a token or a class is called in tables."""
    name = option_name(opened, index)
    return name if opened.config.head == "classifier" else text_of(name)
