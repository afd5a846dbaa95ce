"""Beam search: the tree of the tokens that were considered, and the texts that it found."""

import math

import streamlit as st
import torch

from explorer.app import controls, widget_state
from explorer.app.context import PageContext
from explorer.app.messages import or_stop
from explorer.app.progress import with_bar
from explorer.catalog.opened_model import OpenModel
from explorer.components.tree import Node, tree
from explorer.inference.continuation import prompt_of
from explorer.inference.generation_limits import MAX_GENERATED, Prompt, require_probabilities
from explorer.inference.results_cache import kept
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


def draw_beam_search(context: PageContext) -> Script:
    """The controls, the tree with the best text marked, and the texts; gives the code."""
    opened, text = context.opened, context.choice.text
    prompt = or_stop(lambda: prompt_of(opened, text))
    places = widgets.side_by_side(1, 1, 1)
    with places[0]:
        beams = int(controls.slider("beams"))
    with places[1]:
        alpha = controls.slider("alpha")
    with places[2]:
        length = min(int(controls.slider("length")), prompt.room)
    found = _search(opened, text, prompt, beams, length, alpha)
    scores = [node.log_probability for node in found.nodes] if found.ends else [math.nan]
    or_stop(lambda: require_probabilities(torch.tensor(scores)))

    def take(node: int) -> None:
        branches = current_branches(context, prompt)
        append_tokens(branches, found.path(node), forced=True, behind=0)
        widget_state.put("way", "Token by token")

    tree(
        _nodes(opened, found, alpha),
        key="beam_tree",
        title="Beam search: tokens considered",
        idle=BEAM_IDLE,
        rows=nodes_per_step(opened.config, beams),
        marked=_nodes_to(found, found.ends[0]),
        on_pick=take,
    )
    st.caption(
        "Score: the log-probability of all tokens up to here ÷ ((5 + tokens) ÷ 6)^α. "
        f"{len(found.nodes):,} tokens considered, {sum(n.kept for n in found.nodes):,} kept."
    )
    is_full = length == prompt.room < MAX_GENERATED and PASS_TOKENS.allows(opened.config.max_len)
    cut = "no positions left" if is_full else f"stopped at {length} tokens"
    _draw_found_texts(opened, found, alpha, cut)
    return script(beams_code, opened, text, beams, length, alpha)


def _search(
    opened: OpenModel, text: str, prompt: Prompt, beams: int, length: int, alpha: float
) -> Beams:
    """The search after this prompt, cached. A new choice of the reader stops it."""

    def search() -> Beams:
        steps = beam_steps(opened.model, prompt.ids, beams=beams, max_length=length, alpha=alpha)
        return with_bar(steps, length, "Searching")[-1]

    return kept(opened, ("beams", text, beams, length, alpha), search)


def _nodes(opened: OpenModel, found: Beams, alpha: float) -> list[Node]:
    """In each step the likeliest token is on top."""
    made, rows = list[Node](), dict[int, int]()
    for node in found.nodes:
        row = rows[node.step] = rows.get(node.step, -1) + 1
        how = "ended" if node.ended else "" if node.kept else "cut"
        fate = "ends the text" if node.ended else "kept" if node.kept else "not kept"
        said = (
            f"{{token}}: log-probability {three(node.log_probability)} ÷ "
            f"{three(length_penalty(node.step + 1, alpha))} = score {three(node.score)}; {fate}"
        )
        before = found.path(node.parent)[-LAST:] if node.parent >= 0 else []
        label = candidate_text(
            opened.tokenizer.label(node.token), [*map(opened.tokenizer.label, before)]
        )
        made.append(Node(node.parent, node.step, row, label, three(node.score), said, how))
    return made


def _nodes_to(found: Beams, place: int) -> list[int]:
    line = list[int]()
    while place >= 0:
        line.append(place)
        place = found.nodes[place].parent
    return line[::-1]


def _draw_found_texts(opened: OpenModel, found: Beams, alpha: float, cut: str) -> None:
    ends = [found.nodes[end] for end in found.ends]
    st.markdown("**Texts found**")
    table(
        {
            "text": [one_line(opened.tokenizer.decode(found.path(end))) for end in found.ends],
            "tokens": [node.step + 1 for node in ends],
            "log-probability": [three(node.log_probability) for node in ends],
            "length penalty": [three(length_penalty(node.step + 1, alpha)) for node in ends],
            "score": [three(node.score) for node in ends],
            "end": ["end-of-text token" if node.ended else cut for node in ends],
        },
        most_rows=len(ends),
        width=widgets.WIDEST,
    )


def beams_code(opened: OpenModel, text: str, beams: int, length: int, alpha: float) -> None:
    ids = prompt_of(opened, text).ids
    found = beam_search(opened.model, ids, beams=beams, max_length=length, alpha=alpha)
    for end in found.ends:
        print(found.nodes[end].score, opened.tokenizer.decode(found.path(end)))
