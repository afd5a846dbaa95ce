"""Beam search: the tree of the tokens that were considered, and the finished texts."""

import math

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from explorer.app import controls, widget_state
from explorer.app.context import PageContext
from explorer.app.messages import or_stop
from explorer.app.progress import with_bar
from explorer.catalog.opened_model import OpenModel
from explorer.components.tree import Node, tree
from explorer.inference.continuation import prompt_of
from explorer.inference.generation_limits import MAX_GENERATED, require_probabilities
from explorer.inference.results_cache import cached
from explorer.system.limits import PASS_TOKENS
from explorer.text.number_format import three
from explorer.text.token_labels import LAST, candidate_text
from explorer.views.generation.branch_tree import append_tokens, current_branches, one_line
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.tables import table
from models.beam_search import Beams, beam_search, beam_steps, length_penalty, nodes_per_step

BEAM_IDLE = (
    "Each column is a step; tokens that are not kept are faint. Click a token to continue from it "
    "token by token."
)


def draw_beam_search(context: PageContext, row: DeltaGenerator) -> Script:
    """Draw the controls in the `row` of the page, the tree, and the texts; return the code."""
    opened, text = context.opened, context.choice.text
    prompt = or_stop(lambda: prompt_of(opened, text))
    with row:
        width = int(controls.slider("beams"))
        alpha = controls.slider("alpha")
        length = min(int(controls.slider("length")), prompt.room)

    def search() -> Beams:
        steps = beam_steps(opened.model, prompt.ids, beams=width, max_length=length, alpha=alpha)
        return with_bar(steps, length, "Searching")[-1]

    beams = cached(opened, ("beams", text, width, length, alpha), search)
    scores = [node.log_probability for node in beams.nodes] if beams.ends else [math.nan]
    or_stop(lambda: require_probabilities(torch.tensor(scores)))

    def continue_from_node(node: int) -> None:
        append_tokens(current_branches(context, prompt), beams.path(node), forced=True, behind=0)
        widget_state.put("way", "Token by token")

    tree(
        _nodes(opened, beams, alpha),
        key="beam_tree",
        title="Beam search: tokens considered",
        idle=BEAM_IDLE,
        rows=nodes_per_step(opened.config, width),
        marked=_nodes_to(beams, beams.ends[0]),
        on_pick=continue_from_node,
    )
    st.caption(
        "Score: the log-probability of all tokens up to here ÷ ((5 + tokens) ÷ 6)^α. "
        f"{len(beams.nodes):,} tokens considered, {sum(n.kept for n in beams.nodes):,} kept."
    )
    is_full = length == prompt.room < MAX_GENERATED and PASS_TOKENS.allows(opened.config.max_len)
    cut = "no positions left" if is_full else f"stopped at {length} tokens"
    _draw_texts(opened, beams, alpha, cut)
    return script(beams_code, opened, text, width, length, alpha)


def _nodes(opened: OpenModel, beams: Beams, alpha: float) -> list[Node]:
    """The nodes as the tree draws them: the likeliest token of each step is on top."""
    nodes, rows = list[Node](), dict[int, int]()
    for node in beams.nodes:
        row = rows[node.step] = rows.get(node.step, -1) + 1
        how = "ended" if node.ended else "" if node.kept else "cut"
        fate = "ends the text" if node.ended else "kept" if node.kept else "not kept"
        sentence = (
            f"{{token}}: log-probability {three(node.log_probability)} ÷ "
            f"{three(length_penalty(node.step + 1, alpha))} = score {three(node.score)}; {fate}"
        )
        before = beams.path(node.parent)[-LAST:] if node.parent >= 0 else []
        label = candidate_text(
            opened.tokenizer.label(node.token), [*map(opened.tokenizer.label, before)]
        )
        nodes.append(Node(node.parent, node.step, row, label, three(node.score), sentence, how))
    return nodes


def _nodes_to(beams: Beams, node: int) -> list[int]:
    line = list[int]()
    while node >= 0:
        line.append(node)
        node = beams.nodes[node].parent
    return line[::-1]


def _draw_texts(opened: OpenModel, beams: Beams, alpha: float, cut: str) -> None:
    ends = [beams.nodes[end] for end in beams.ends]
    st.markdown("**Texts found**")
    table(
        {
            "text": [one_line(opened.tokenizer.decode(beams.path(end))) for end in beams.ends],
            "tokens": [node.step + 1 for node in ends],
            "log-probability": [three(node.log_probability) for node in ends],
            "length penalty": [three(length_penalty(node.step + 1, alpha)) for node in ends],
            "score": [three(node.score) for node in ends],
            "end": ["end-of-text token" if node.ended else cut for node in ends],
        },
        most_rows=len(ends),
        width=widgets.WIDEST,
    )


def beams_code(opened: OpenModel, text: str, width: int, length: int, alpha: float) -> None:
    ids = prompt_of(opened, text).ids
    beams = beam_search(opened.model, ids, beams=width, max_length=length, alpha=alpha)
    for end in beams.ends:
        print(beams.nodes[end].score, opened.tokenizer.decode(beams.path(end)))
