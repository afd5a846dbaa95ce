"""Trees of tokens: the reader's branches, which the address has, and those of beam search."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from explorer.app import controls, widget_state
from explorer.app.context import PageContext
from explorer.app.messages import draw_notes, drop_notes, keep_note, or_stop
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.progress import bar, with_bar
from explorer.app.session import state_of
from explorer.catalog.opened_model import OpenModel
from explorer.components.tree import Node, tree
from explorer.inference.branches import Branches, parse_branches
from explorer.inference.continuation import Continuation, log_probabilities, prompt_of
from explorer.inference.generation_limits import (
    MAX_GENERATED,
    Prompt,
    require_probabilities,
)
from explorer.inference.results_cache import cached
from explorer.system.limits import PASS_TOKENS
from explorer.text.number_format import three
from explorer.text.token_labels import LAST, candidate_text
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.tables import table
from models.beam_search import Beams, beam_search, beam_steps, length_penalty, nodes_per_step

STEP = "written"
"""The address parameter that says how many tokens of the branch are shown."""
DO_NOT_FIT = (
    "The branches in the address do not fit this model and text, so they are left out: sample "
    "a token, or choose one."
)
CLICK = "generation"
"""The key of the notes about the last click."""
TREE_ROWS = 4
IDLE = "A node is a token with its probability at temperature 1. Choose one to go back to it."
EMPTY = "Nothing is generated yet. Sample a token, or choose one above: the branches appear here."


@dataclass
class ShownBranches:
    """The model and the text whose branches are on screen."""

    of: tuple[str, str] | None = None


ADDRESS = PersistentChoices("branches", {"branches": ""}, goes_with=ShownBranches)


class BranchesByText(dict[tuple[str, str], str]):
    """The branches of every model and text that were on screen before."""


@dataclass
class GenerateClick:
    """The reader clicked Generate, and this run of the page has not answered it yet."""

    is_pending: bool = False


def current_branches(context: PageContext, prompt: Prompt) -> Branches:
    """The branches of this model and text; a model and text chosen again get theirs back."""
    opened, on_screen, by_text = context.opened, state_of(ShownBranches), state_of(BranchesByText)
    place = (context.choice.model, context.choice.text)
    is_other = on_screen.of not in (None, place)
    if on_screen.of is not None and is_other:
        by_text[on_screen.of] = str(ADDRESS.texts().get("branches", ""))
        ADDRESS.put("branches", by_text.get(place, ""))
    on_screen.of = place
    address = str(ADDRESS.texts().get("branches", ""))
    config = opened.config
    ends = config.generation.eos_ids
    branches = parse_branches(address, config.vocab_size, ends, prompt.room)
    if branches is None:
        keep_note("branches", DO_NOT_FIT, until=place)
    branches = branches or Branches()
    ADDRESS.settle({"branches": str(branches)})
    if is_other:
        _show_end(branches)
    if not branches.actions:
        draw_notes("branches", place)
    return branches


def put_branches(branches: Branches) -> None:
    """In a callback: replace the branches by these."""
    drop_notes("branches")
    ADDRESS.put("branches", str(branches))
    _show_end(branches)


def keep_generated(branches: Branches) -> None:
    """During a run of the page: replace the branches, and keep a step that the address names."""
    if widget_state.has(STEP):
        _show_end(branches)
    ADDRESS.settle({"branches": str(branches)})


def go_to_step(step: int) -> None:
    """In a callback: show this many tokens of the branch."""
    widget_state.put(STEP, step)


def _show_end(branches: Branches) -> None:
    """Show the tokens up to the current node."""
    go_to_step(branches.depths[branches.at])


def append_tokens(
    branches: Branches, tokens: Sequence[int], *, forced: bool, behind: int | None = None
) -> None:
    """In a callback: append these tokens, or say why they do not fit."""
    try:
        put_branches(branches.append(tokens, forced=forced, behind=behind))
    except ValueError as error:
        keep_note(CLICK, str(error))


def draw_branches(
    context: PageContext, branches: Branches, continuation: Continuation, last: int, step: int
) -> None:
    """Draw the tree of sampled and forced tokens, and a table of the branches.

    `continuation` is the forward pass up to node `last`; `step` tokens of the branch are shown.
    """
    opened, line = context.opened, [0, *branches.line]
    with bar("Scoring the branches") as report:
        scores = log_probabilities(
            opened, context.choice.text, branches, continuation, last, report
        )
    nodes = _nodes(opened, branches, scores)

    def pick(node: int) -> None:
        if node in line:
            go_to_step(line.index(node))
        else:
            put_branches(branches.go_to(node))

    tree(
        nodes,
        key="branches_tree",
        title="Branches",
        idle=IDLE if branches.done else EMPTY,
        rows=min(TREE_ROWS, 1 + max(node.row for node in nodes)),
        marked=line[: step + 1],
        follows=True,
        on_pick=pick,
    )
    leaves = branches.leaves()
    if not leaves:
        return
    lines = [branches.nodes_to(leaf) for leaf in leaves]
    totals = [sum(scores[node] for node in line) for line in lines]
    decode = opened.tokenizer.decode
    columns = {
        "branch": [one_line(decode([*branches.path(leaf)])) for leaf in leaves],
        "tokens": [len(line) for line in lines],
        "log-probability": [three(total) for total in totals],
        "per token": [three(t / len(line)) for t, line in zip(totals, lines, strict=True)],
    }
    table(columns, most_rows=5, width=widgets.WIDEST)
    st.caption("Log-probabilities are in nats, at temperature 1.")


def _nodes(opened: OpenModel, branches: Branches, scores: Sequence[float]) -> list[Node]:
    """The nodes as the tree draws them, the prompt first."""
    rows, last = _rows(branches), opened.config.generation.eos_ids
    nodes = [Node(-1, 0, 0, "start", "", "The prompt", "start")]
    for place, node in enumerate(branches.nodes[1:], 1):
        column = branches.depths[place]
        probability = three(math.exp(scores[place]))
        how = "ended" if node.token in last else "forced" if node.forced else ""
        chosen = "forced" if node.forced else "sampled"
        sentence = f"{{token}}: token {column}, {chosen}; probability {probability}"
        before = map(opened.tokenizer.label, branches.path(node.parent)[-LAST:])
        label = candidate_text(opened.tokenizer.label(node.token), [*before])
        nodes.append(Node(node.parent, column, rows[place], label, probability, sentence, how))
    return nodes


def _rows(branches: Branches) -> list[int]:
    """The row of each node: a first child stays in its parent's, others begin a new one."""
    rows, last_row = [0], 0
    for place, node in enumerate(branches.nodes[1:], 1):
        is_first = next(iter(branches.children[node.parent].values())) == place
        last_row += not is_first
        rows.append(rows[node.parent] if is_first else last_row)
    return rows


def one_line(text: str) -> str:
    """A text for a table's cell, with visible line breaks."""
    return text.replace("\n", " ↵ ").strip(" ") or "∅"


BEAM_IDLE = (
    "Each column is a step; tokens that are not kept are faint. Choose one to continue from it "
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
        _beam_nodes(opened, beams, alpha),
        key="beam_tree",
        title="Beam search: tokens considered",
        idle=BEAM_IDLE,
        rows=nodes_per_step(opened.config, width),
        marked=_nodes_to(beams, beams.ends[0]),
        on_pick=continue_from_node,
    )
    st.caption(
        "Score: the sum of the log-probabilities of all tokens up to here ÷ ((5 + tokens) ÷ 6)^α. "
        f"{len(beams.nodes):,} tokens considered, {sum(n.kept for n in beams.nodes):,} kept."
    )
    is_full = length == prompt.room < MAX_GENERATED and PASS_TOKENS.allows(opened.config.max_len)
    cut = "no positions left" if is_full else f"stopped at {length} tokens"
    ends, decode = [beams.nodes[end] for end in beams.ends], opened.tokenizer.decode
    st.markdown("**Texts found**")
    columns = {
        "text": [one_line(decode(beams.path(end))) for end in beams.ends],
        "tokens": [node.step + 1 for node in ends],
        "log-probability": [three(node.log_probability) for node in ends],
        "length penalty": [three(length_penalty(node.step + 1, alpha)) for node in ends],
        "score": [three(node.score) for node in ends],
        "end": ["end-of-text token" if node.ended else cut for node in ends],
    }
    table(columns, most_rows=len(ends), width=widgets.WIDEST)
    return script(beams_code, opened, text, width, length, alpha)


def _beam_nodes(opened: OpenModel, beams: Beams, alpha: float) -> list[Node]:
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


def beams_code(opened: OpenModel, text: str, width: int, length: int, alpha: float) -> None:
    ids = prompt_of(opened, text).ids
    beams = beam_search(opened.model, ids, beams=width, max_length=length, alpha=alpha)
    for end in beams.ends:
        print(beams.nodes[end].score, opened.tokenizer.decode(beams.path(end)))
