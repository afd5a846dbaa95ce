"""Attention rollout and attention flow: how much of each input token reaches a later layer."""

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis import rollout
from explorer.app.context import PageContext
from explorer.app.controls import expander, one_of, token
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.catalog.attention_parts import map_title
from explorer.charts.sankey_and_icicle import EDGES_DRAWN, FlowEdge, rollout_sankey, strongest_edges
from explorer.charts.theme import palette
from explorer.components.chart import Table, plotly_chart
from explorer.components.matrix import matrix
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.text.number_format import three
from explorer.text.token_labels import named_at, texts
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import input_key

MOST_CELLS = 2_000_000
"""The most numbers of all layers together that are drawn, or that are in the graph of a flow."""


def draw_flow_sankey(forward: ForwardPass, part: str, layers: int, token: int) -> None:
    """An expander with the paths through the first `layers` layers to one token."""
    with expander("flow_sankey") as panel:
        if not panel.open:
            return
        tokens = texts(forward.rows(part))
        if layers * len(tokens) ** 2 > MOST_CELLS:
            st.caption("This text is too long to follow layer by layer; choose a lower layer.")
            return
        shares = rollout.edge_shares([*rollout.half_residual_layers(forward, part, layers)], token)
        edges = strongest_edges(shares)
        figure = rollout_sankey(edges, tokens, layers, palette(st.context.theme.type))
        table: Table = {
            "layer": [edge.layer for edge in edges],
            "from": [f"{edge.lower} {tokens[edge.lower]}" for edge in edges],
            "to": [f"{edge.upper} {tokens[edge.upper]}" for edge in edges],
            "share": [edge.share for edge in edges],
        }
        plotly_chart(figure, key="flow_edges", title="Rollout, layer by layer", table=table)
        st.caption(_caption(edges, layers))


def _caption(edges: list[FlowEdge], layers: int) -> str:
    shares = [sum(edge.share for edge in edges if edge.layer == layer) for layer in range(layers)]
    return (
        "Attention rollout of the chosen token: the text at the left, the token after the last of "
        "these layers at the right. A band is the share of the token that passes through it; "
        "at least half of every token stays in its own row, the residual stream. "
        f"At most the {EDGES_DRAWN} strongest bands of each layer are drawn, at least "
        f"{min(shares):.0%} of the whole."
    )


CHOICE_WIDTH = 240
FLOW_SOURCE = "Abnar & Zuidema 2020, Quantifying Attention Flow in Transformers."
SUMS = ", so every row sums to 1"
ROLLOUT = (
    "A row is a token after these layers, a column an input token. Each layer is ½ mean attention "
    "weights over the heads + ½ identity for the residual connection; rollout is the product of "
    f"the layers{SUMS}. Values, norms and feed-forward layers are ignored. "
    f"{FLOW_SOURCE}"
)
FLOW = (
    "Flow is the maximum flow: the most that fits from an input token up to the token, if no edge "
    "carries more than its capacity, which in a layer is ½ mean attention weights over the heads + "
    "½ identity, as in rollout. Input tokens share "
    "edges, so flows need not sum to 1: here they sum to {total}, and the largest is {largest}. "
    "Rollout sums to 1 over the input tokens; weight is the mean over the heads of layer {layer} "
    f"alone. Each row has its own colour scale. {FLOW_SOURCE}"
)
TOO_MANY = (
    "Up to {edges:,} edges from each of {inputs:,} input tokens take too long to solve: edges × "
    f"input tokens may be at most {rollout.STEPS_SOLVED:,}. Choose a lower layer or an earlier "
    "token, or enter a shorter text."
)


def draw_rollout(context: PageContext, row: DeltaGenerator) -> Script | None:
    """Tokens after the layers down, the input across; controls in the `row`; returns the code."""
    part = context.part.name
    with row:
        layer = _through_layer(context)
    shares, reached = _rolled_out(context, layer)
    matrix(
        shares,
        context.forward.rows(part),
        context.forward.columns(part),
        key="rollout",
        title=_title(context, layer, "rollout"),
        allowed=reached,
        row_name="token",
        column_name="input",
        sentence=f"{{row}} after layer {layer} gets from {{column}}: {{value}}",
        masked_sentence="{column} does not reach {row}",
        absent="not reached",
        unit="rollout",
    )
    config = context.opened.config
    is_scaled = config.sink_logit or config.gated_attention
    st.caption(_of_stack(context) + ROLLOUT.replace(SUMS, "" if is_scaled else SUMS))
    return script(rollout_code, context.forward, part, layer + 1)


def draw_flow(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The flow to one token after the layers, with its rollout and weights; returns the code.

    Its controls stand in the `row`.
    """
    part, forward = context.part, context.forward
    tokens = forward.rows(part.name)
    with row:
        layer = _through_layer(context)
        place = token("flow_to", tokens, len(tokens) - 1, width=CHOICE_WIDTH)
    flows = _flows(context, layer, place)
    if isinstance(flows, str):
        say(flows)
        return None
    shares, reached = _rolled_out(context, layer)
    weights = [forward.weights(part.name, layer, head)[place] for head in range(part.heads)]
    matrix(
        torch.stack([flows, shares[place], torch.stack(weights).double().mean(0)]),
        ["flow", "rollout", "weight"],
        forward.columns(part.name),
        key="flow",
        title=_title(context, layer, f"flow to {named_at(tokens, place)}"),
        allowed=reached[place].expand(3, -1),
        row_name="measure",
        column_name="input",
        sentence="{row} from {column}: {value}",
        masked_sentence="{column} does not reach this token",
        absent="not reached",
        unit="share",
        scaling="row",
    )
    total, largest = three(float(flows.sum())), three(float(flows.max()))
    st.caption(_of_stack(context) + FLOW.format(total=total, largest=largest, layer=layer))
    draw_flow_sankey(forward, part.name, layer + 1, place)
    return script(flow_code, forward, part.name, layer + 1, place)


def _through_layer(context: PageContext) -> int:
    """The last layer that is included, by default the last of all."""
    layers = [str(layer) for layer in range(context.part.layers)]
    return int(one_of("through", layers, layers[-1], as_list=True, width=CHOICE_WIDTH))


def _title(context: PageContext, layer: int, what: str) -> str:
    """The model, the attention, its layers, and the measure, as a title."""
    through = f"Layers 0 to {layer} of {context.part.layers}" if layer else "Layer 0"
    return map_title(context.called, context.part.name, f"{through}, {what}")


def _of_stack(context: PageContext) -> str:
    """What the matrix of a decoder that also reads an encoder leaves out."""
    if context.part.name == "decoder.self_attn" and len(context.forward.parts) > 1:
        return "Cross-attention to the encoder is not part of this matrix. "
    return ""


def _rolled_out(context: PageContext, layer: int) -> tuple[Tensor, Tensor]:
    """The rollout up to a layer, and the inputs that the masks let through to each token."""
    forward, part = context.forward, context.part.name

    def make() -> tuple[Tensor, Tensor]:
        steps = rollout.half_residual_layers(forward, part, layer + 1)
        masks = (forward.mask(part, index) for index in range(layer + 1))
        with st.spinner("Multiplying the layers"):
            return rollout.rollout(steps), rollout.has_path(masks)

    key = ("rollout", part, layer, input_key(forward))
    return cached(context.opened, key, make)


def _flows(context: PageContext, layer: int, place: int) -> Tensor | str:
    """The flow to the token from each input, or the reason why it is not computed."""
    forward, part = context.forward, context.part.name
    count, tokens = layer + 1, len(forward.rows(part))
    masks = [forward.mask(part, index) for index in range(count)]
    sees_later = any(bool(mask[: place + 1, place + 1 :].any()) for mask in masks)
    first = tokens if sees_later else place + 1  # what comes later cannot be reached
    if count > 1 and (edges := _edges(masks, place, first)) * first > rollout.STEPS_SOLVED:
        return TOO_MANY.format(edges=edges, inputs=first)

    def make() -> Tensor:
        steps = rollout.half_residual_layers(forward, part, count)
        graph = [step[:first, :first].clone() for step in steps]
        solved = with_bar(rollout.flow_to(graph, place), first, "Solving the flow, by input")
        return torch.tensor([*solved, *[0.0] * (tokens - first)], dtype=torch.double)

    key = ("flow", part, layer, place, input_key(forward))
    return cached(context.opened, key, make)


def _edges(masks: list[Tensor], place: int, first: int) -> int:
    """An upper bound of the edges below the token; of a large graph, all possible edges."""
    most = len(masks) * first * first
    if most > MOST_CELLS:
        return most
    itself = torch.eye(first, dtype=torch.bool)
    return rollout.edges_below([mask[:first, :first] | itself for mask in masks], place)


def rollout_code(forward: ForwardPass, part: str, layers: int) -> None:
    shares = rollout.rollout(rollout.half_residual_layers(forward, part, layers))
    print(shares)  # a row per token, a column per input


def flow_code(forward: ForwardPass, part: str, layers: int, token: int) -> None:
    graph = [*rollout.half_residual_layers(forward, part, layers)]
    flow = torch.tensor([*rollout.flow_to(graph, token)])
    share = rollout.rollout(graph)[token]
    print(flow, share)  # a number for each input
