"""What a token of a later layer can have taken from the text: rollout, and flow."""

from __future__ import annotations

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis import rollout
from explorer.analysis.measured_heads import tokens_read
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.app.controls import token as token_chosen
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.catalog.opened_model import Opened
from explorer.components import matrix
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.snippets import head_metrics_code
from explorer.views.shared import widgets

HEIGHT, FLOW_HEIGHT, CHOICE_WIDTH = 560, 250, 240
SOURCE = "Abnar & Zuidema 2020, Quantifying Attention Flow in Transformers."
ROLLOUT = (
    "A row is a token after these layers, a column an input. "
    "From layer to layer half of a token stays and half is what its row looks up, averaged over "
    "the heads; the layers are multiplied. Every row sums to one. Values, norms and feed-forward "
    f"layers are not seen. {SOURCE}"
)
FLOW = (
    "Flow takes the same graph as pipes: the most that fits from each input up to the token. "
    "Inputs share pipes, so flows need not sum to one, and deep stacks let nearly all of it "
    "through. "
    "Rollout shares one out among the inputs; weight is the mean over the heads of the last of "
    f"these layers alone. Each row has the colours to itself. {SOURCE}"
)
TOO_MANY = (
    "A flow through up to {edges:,} edges from each of {inputs:,} inputs takes too long to wait "
    f"for; edges × inputs may be at most {rollout.STEPS_SOLVED:,}: choose a lower layer or an "
    "earlier token, or type a shorter text."
)
CELLS_HELD = 2_000_000
"""Numbers of all layers together that are held to find a flow."""


def show_rollout(opened: Opened, forward: ForwardPass) -> None:
    """Tokens after the layers down, the text across."""
    if not _in_one_stack(forward):
        return
    at = page_context().choice
    layer = _up_to(forward)
    _title(forward, layer)
    shares, reached = _rolled(opened, forward, layer)
    tokens = forward.rows(at.part)
    matrix(
        shares,
        tokens,
        forward.columns(at.part),
        key="rollout",
        allowed=reached,
        row_name="token",
        column_name="input",
        sentence=f"{{row}} after layer {layer} is made of {{column}}: {{value}}",
        forbidden="Nothing of {column} reaches {row}",
        absent="no way leads there",
        unit="share",
        height=HEIGHT,
    )
    st.caption(ROLLOUT)
    folder, count = page_context().folder, layer + 1
    widgets.code(
        rollout.mixed,
        rollout.rollout,
        pasted=lambda: head_metrics_code.rollout(forward, folder, at.part, count),
    )


def show_flow(opened: Opened, forward: ForwardPass) -> None:
    """One token after the layers: what flows to it, beside rollout and plain weight."""
    if not _in_one_stack(forward):
        return
    at = page_context().choice
    tokens = forward.rows(at.part)
    with st.container(horizontal=True):
        layer = _up_to(forward)
        with st.container(width=CHOICE_WIDTH):
            token = token_chosen("Token", "flow_to", tokens, len(tokens) - 1)
    _title(forward, layer)
    flows = _flows(opened, forward, layer, token)
    if isinstance(flows, str):
        say(flows)
        return
    shares, reached = _rolled(opened, forward, layer)
    heads = range(forward.part(at.part).heads)
    weights = [forward.weights(at.part, layer, head)[token] for head in heads]
    matrix(
        torch.stack([flows, shares[token], torch.stack(weights).double().mean(0)]),
        ["flow", "rollout", "weight"],
        forward.columns(at.part),
        key="flow",
        allowed=reached[token].expand(3, -1),
        row_name="measure",
        column_name="input",
        sentence="{row} from {column}: {value}",
        forbidden="Nothing of {column} reaches this token",
        absent="no way leads there",
        unit="share",
        scaling="row",
        height=FLOW_HEIGHT,
    )
    st.caption(FLOW)
    folder, count = page_context().folder, layer + 1
    widgets.code(
        rollout.mixed,
        rollout.flows,
        pasted=lambda: head_metrics_code.flow(forward, folder, at.part, count, token),
    )


def _in_one_stack(forward: ForwardPass) -> bool:
    if page_context().choice.part.endswith("self_attn"):
        return True
    say(
        "Cross-attention leads from one stack into another and has no residual path back to the "
        "source: choose a stack to follow."
    )
    with st.container(horizontal=True):
        for part in forward.parts:
            if part.name.endswith("self_attn"):
                st.button(
                    part.title, key=f"follow_{part.title}", on_click=_follow, args=(part.name,)
                )
    return False


def _follow(part: str) -> None:
    st.session_state["part"] = part


def _up_to(forward: ForwardPass) -> int:
    """The last of the layers that are looked through: all of them, unless the reader says less."""
    layers = [str(layer) for layer in range(forward.part(page_context().choice.part).layers)]
    with st.container(width=CHOICE_WIDTH):
        return int(one_of("Through layer", "through", layers, layers[-1], as_list=True))


def _title(forward: ForwardPass, layer: int) -> None:
    part = forward.part(page_context().choice.part)
    through = f"layers 0 to {layer}" if layer else "layer 0"
    rest = "" if layer == part.layers - 1 else f" of {part.layers}"
    st.markdown(f"**{part.title}, {through}**{rest}")
    if part.name == "decoder.self_attn" and len(forward.parts) > 1:
        st.caption("What the decoder takes from the encoder's text is not in this picture.")


def _rolled(opened: Opened, forward: ForwardPass, layer: int) -> tuple[Tensor, Tensor]:
    """Rollout up to a layer, and which inputs the masks let through to each token."""
    at = page_context().choice
    count = layer + 1

    def make() -> tuple[Tensor, Tensor]:
        steps = rollout.mixings(forward, at.part, count)
        masks = (forward.mask(at.part, each) for each in range(count))
        with st.spinner("Multiplying the layers"):
            return rollout.rollout(steps), rollout.reached(masks)

    return kept(
        opened,
        ("rollout", at.part, layer, tokens_read(forward)),
        make,
        lambda made: made[0].nbytes + made[1].nbytes,
    )


def _flows(opened: Opened, forward: ForwardPass, layer: int, token: int) -> Tensor | str:
    """What flows to the token from each input, or the sentence why that is not solved."""
    at = page_context().choice
    count, tokens = layer + 1, len(forward.rows(at.part))
    masks = [forward.mask(at.part, each) for each in range(count)]
    looks_ahead = any(bool(mask[: token + 1, token + 1 :].any()) for mask in masks)
    first = tokens if looks_ahead else token + 1  # what comes later cannot be reached
    if count > 1 and (edges := _edges(masks, token, first)) * first > rollout.STEPS_SOLVED:
        return TOO_MANY.format(edges=edges, inputs=first)

    def make() -> Tensor:
        steps = rollout.mixings(forward, at.part, count)
        mixing = [step[:first, :first].clone() for step in steps]
        solved = with_bar(rollout.flows(mixing, token), first, "Solving the flow, by input")
        return torch.tensor([*solved, *[0.0] * (tokens - first)], dtype=torch.double)

    return kept(
        opened,
        ("flow", at.part, layer, token, tokens_read(forward)),
        make,
        lambda made: made.nbytes,
    )


def _edges(masks: list[Tensor], token: int, first: int) -> int:
    """The most edges that there can be below the token; of a large graph, all there is room for."""
    most = len(masks) * first * first
    if most > CELLS_HELD:
        return most
    itself = torch.eye(first, dtype=torch.bool)
    return rollout.edges_from([mask[:first, :first] | itself for mask in masks], token)
