"""Beam search on the screen: every token that was considered, and the texts it found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from explorer.app import number_controls
from explorer.app.context import page_context
from explorer.app.messages import or_stop
from explorer.app.progress import with_bar
from explorer.catalog.opened_model import Opened
from explorer.components.tree import Node, tree
from explorer.inference.continuation import Start, start_of
from explorer.inference.generated_text import MOST_WRITTEN
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import kept, size_of
from explorer.snippets import decoding_code as snippets
from explorer.text.number_format import three
from explorer.views.decoding import branch_history
from explorer.views.decoding.branch_tree import in_a_line
from explorer.views.shared import growing_text, widgets
from models.beam_search import Beams, beam_steps, considered, length_penalty

IDLE = "A column is a step; what is not kept is faint. Click a token to go on from it by hand."


def show() -> Callable[[], str]:
    """The controls, the tree with the best text marked, and what was found.

    Gives the lines that search.
    """
    opened, text = page_context().opened, page_context().choice.text
    start = or_stop(lambda: start_of(opened, text))
    places = widgets.side_by_side(1, 1, 1)
    with places[0]:
        beams = int(number_controls.slider("Beams", "beams", 1, 8, 4))
    with places[1]:
        alpha = number_controls.slider("Length penalty α", "alpha", 0.0, 2.0, 0.6, step=0.1)
    with places[2]:
        length = min(growing_text.length(), start.room)
    found = searched(opened, text, start, beams, length, alpha)
    best = found.ends[0]
    tree(
        nodes(opened, found, alpha),
        key="beam_tree",
        idle=IDLE,
        rows=considered(opened.config, beams),
        marked=_line(found, best),
        on_pick=lambda node: _take(opened, start, found.path(node)),
    )
    st.caption(
        f"A token's score is the log-probability of everything up to it ÷ ((5 + tokens) ÷ 6)^α; "
        f"{len(found.nodes):,} tokens were considered, {sum(n.kept for n in found.nodes):,} kept."
    )
    is_full = length == start.room and start.room < MOST_WRITTEN
    _table(opened, found, alpha, "no places left" if is_full else f"cut after {length} tokens")
    return partial(snippets.beams, start, page_context().folder, beams, length, alpha)


def searched(
    opened: Opened, text: str, start: Start, beams: int, length: int, alpha: float
) -> Beams:
    """The search over this text; made once and kept. Another choice of the reader stops it."""
    prompt = ids_of([start.source or start.begun])

    def search() -> Beams:
        steps = beam_steps(opened.model, prompt, beams=beams, max_length=length, alpha=alpha)
        return with_bar(steps, length, "Searching")[-1]

    return kept(opened, ("beams", text, beams, length, alpha), search, size_of)


def nodes(opened: Opened, found: Beams, alpha: float) -> list[Node]:
    """In each step the likeliest stands on top."""
    made, rows = list[Node](), dict[int, int]()
    for node in found.nodes:
        row = rows[node.step] = rows.get(node.step, -1) + 1
        how = "ended" if node.ended else "" if node.kept else "cut"
        fate = "it ends the text" if node.ended else "kept" if node.kept else "not kept"
        said = (
            f"{{token}}: log-probability {three(node.log_probability)} ÷ "
            f"{three(length_penalty(node.step + 1, alpha))} = score {three(node.score)}; {fate}"
        )
        label = opened.tokenizer.label(node.token)
        made.append(Node(node.parent, node.step, row, label, three(node.score), said, how))
    return made


def _line(found: Beams, place: int) -> list[int]:
    line = list[int]()
    while place >= 0:
        line.append(place)
        place = found.nodes[place].parent
    return line[::-1]


def _take(opened: Opened, start: Start, path: list[int]) -> None:
    branch_history.follow(opened, start, path)
    st.session_state["way"] = "Token by token"


def _table(opened: Opened, found: Beams, alpha: float, cut: str) -> None:
    ends = [found.nodes[end] for end in found.ends]
    st.markdown("**What it found**")
    st.dataframe(
        {
            "text": [in_a_line(opened.tokenizer.decode(found.path(end))) for end in found.ends],
            "tokens": [node.step + 1 for node in ends],
            "log-probability": [three(node.log_probability) for node in ends],
            "divided by": [three(length_penalty(node.step + 1, alpha)) for node in ends],
            "score": [three(node.score) for node in ends],
            "stopped": ["ends the text" if node.ended else cut for node in ends],
        },
        hide_index=True,
        height=38 + 35 * len(ends),
        width=widgets.WIDEST,
    )
