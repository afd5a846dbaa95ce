"""The reader's branches: kept in the address, drawn as a tree and compared in a table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.app import widget_state
from explorer.app.context import PageContext
from explorer.app.messages import draw_notes, drop_notes, keep_note
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.progress import bar
from explorer.app.session import state_of
from explorer.catalog.opened_model import OpenModel
from explorer.components.tree import Node, tree
from explorer.inference.branches import Branches, parse_branches
from explorer.inference.continuation import Continuation, log_probabilities
from explorer.inference.generation_limits import Prompt, end_ids
from explorer.text.number_format import three
from explorer.text.token_labels import LAST, candidate_text
from explorer.views.shared import widgets
from explorer.views.shared.tables import table

STEP = "written"
"""Under which name the address has how many tokens of the branch are shown."""
DO_NOT_FIT = (
    "The branches in the address do not fit this model and text, so they are left out: sample "
    "a token, or click one."
)
CLICK = "generation"
"""The key of the notes on what was clicked."""
TREE_ROWS = 4
IDLE = "A node is a token with its probability at temperature 1. Click one to go back to it."
EMPTY = "Nothing is generated yet. Sample a token, or click one above: the branches appear here."


@dataclass
class ShownBranches:
    """The model and the text whose branches are on screen."""

    of: tuple[str, str] | None = None


ADDRESS = PersistentChoices("branches", {"branches": ""}, goes_with=ShownBranches)


class BranchesByText(dict[tuple[str, str], str]):
    """The branches of each model and text that were on screen before."""


@dataclass
class GoOn:
    """Tokens are to be sampled until a limit; a click was made."""

    is_asked: bool = False


def current_branches(context: PageContext, prompt: Prompt) -> Branches:
    """The branches of this text and model; those of another come back with it."""
    opened, shown, kept = context.opened, state_of(ShownBranches), state_of(BranchesByText)
    place = (context.choice.model, context.choice.text)
    is_other = shown.of not in (None, place)
    if shown.of is not None and is_other:
        kept[shown.of] = str(ADDRESS.texts().get("branches", ""))
        ADDRESS.put("branches", kept.get(place, ""))
    shown.of = place
    asked = str(ADDRESS.texts().get("branches", ""))
    found = parse_branches(asked, opened.config.vocab_size, end_ids(opened), prompt.room)
    if found is None:
        keep_note("branches", DO_NOT_FIT, until=place)
    found = found or Branches()
    ADDRESS.settle({"branches": str(found)})
    if is_other:
        _show_end(found)
    if not found.actions:
        draw_notes("branches", place)
    return found


def put_branches(found: Branches) -> None:
    """For a callback: these are the branches from now on."""
    drop_notes("branches")
    ADDRESS.put("branches", str(found))
    _show_end(found)


def keep_generated(found: Branches) -> None:
    """The same within a run. A step that the address asks for is shown still."""
    if widget_state.has(STEP):
        _show_end(found)
    ADDRESS.settle({"branches": str(found)})


def go_to_step(step: int) -> None:
    """For a callback: show so many tokens of the branch."""
    widget_state.put(STEP, step)


def _show_end(found: Branches) -> None:
    """Show the tokens up to the current node."""
    go_to_step(found.depths[found.at])


def append_tokens(
    found: Branches, tokens: Sequence[int], *, forced: bool, behind: int | None = None
) -> None:
    """For a callback: append these tokens, or say why they do not fit."""
    try:
        put_branches(found.append(tokens, forced=forced, behind=behind))
    except ValueError as error:
        keep_note(CLICK, str(error))


def draw_history_buttons(found: Branches) -> None:
    """Undo, redo and clear."""
    for label, key, icon, to, off in (
        ("Undo", "undo_writing", ":material/undo:", found.undo(), not found.done),
        ("Redo", "redo_writing", ":material/redo:", found.redo(), found.done == len(found.actions)),
        ("Clear", "clear_writing", ":material/clear_all:", Branches(), not found.actions),
    ):
        st.button(label, key=key, icon=icon, on_click=put_branches, args=(to,), disabled=off)


def draw_branches(
    context: PageContext, found: Branches, continuation: Continuation, last: int, step: int
) -> None:
    """The tree of sampled and forced tokens, and a table of the branches.

    `continuation` is the forward pass up to node `last`; `step` tokens of the branch are shown.
    """
    opened, line = context.opened, [0, *found.line]
    with bar("Scoring the branches") as report:
        scores = log_probabilities(opened, context.choice.text, found, continuation, last, report)
    made = _nodes(opened, found, scores)

    def pick(node: int) -> None:
        if node in line:
            go_to_step(line.index(node))
        else:
            put_branches(found.go_to(node))

    tree(
        made,
        key="branches_tree",
        title="Branches",
        idle=IDLE if found.done else EMPTY,
        rows=min(TREE_ROWS, 1 + max(node.row for node in made)),
        marked=line[: step + 1],
        follows=True,
        on_pick=pick,
    )
    if found.leaves():
        _draw_branch_table(opened, found, scores)


def _nodes(opened: OpenModel, found: Branches, scores: Sequence[float]) -> list[Node]:
    """The first branch goes straight on, each later one begins a row of its own."""
    rows, last = _rows(found), end_ids(opened)
    made = [Node(-1, 0, 0, "start", "", "The prompt", "start")]
    for place, node in enumerate(found.nodes[1:], 1):
        column = found.depths[place]
        probability = three(math.exp(scores[place]))
        how = "ended" if node.token in last else "forced" if node.forced else ""
        chosen = "forced" if node.forced else "sampled"
        said = f"{{token}}: token {column}, {chosen}; probability {probability}"
        before = map(opened.tokenizer.label, found.path(node.parent)[-LAST:])
        label = candidate_text(opened.tokenizer.label(node.token), [*before])
        made.append(Node(node.parent, column, rows[place], label, probability, said, how))
    return made


def _rows(found: Branches) -> list[int]:
    rows, taken = [0], 0
    for place, node in enumerate(found.nodes[1:], 1):
        is_first = next(iter(found.children[node.parent].values())) == place
        taken += not is_first
        rows.append(rows[node.parent] if is_first else taken)
    return rows


def _draw_branch_table(opened: OpenModel, found: Branches, scores: Sequence[float]) -> None:
    leaves = found.leaves()
    lines = [found.nodes_to(leaf) for leaf in leaves]
    totals = [sum(scores[node] for node in line) for line in lines]
    table(
        {
            "branch": [one_line(opened.tokenizer.decode([*found.path(leaf)])) for leaf in leaves],
            "tokens": [len(line) for line in lines],
            "log-probability": [three(total) for total in totals],
            "per token": [three(t / len(line)) for t, line in zip(totals, lines, strict=True)],
        },
        most_rows=5,
        width=widgets.WIDEST,
    )
    st.caption("Log-probabilities are in nats, at temperature 1.")


def one_line(text: str) -> str:
    """A text for a cell of a table, with visible line ends."""
    return text.replace("\n", " ↵ ").strip(" ") or "∅"
