"""The branches of a reader as a tree, and side by side in a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from explorer.app.progress import bar
from explorer.catalog.opened_model import Opened
from explorer.components.tree import Node, tree
from explorer.inference.branches import Branches
from explorer.inference.continuation import Stand, ends, log_chances
from explorer.text.number_format import three
from explorer.views.decoding import branch_history
from explorer.views.shared import widgets

ROWS = 4
IDLE = "A node is a token with its probability at temperature 1. Click one to go back to it."
EMPTY = "Nothing is written yet. Draw a token, or click one above: what is written grows here."


def show(opened: Opened, text: str, found: Branches, standing: Stand, here: int) -> None:
    """Every token that was written, the likeliest ways and the forced ones; then their chances.

    `standing` is the pass at node `here`.
    """
    with bar("Reading the branches") as report:
        chances = log_chances(opened, text, found, standing, here, report)
    st.markdown("**What was written**")
    made = nodes(opened, found, chances)
    tree(
        made,
        key="branches_tree",
        idle=IDLE if found.done else EMPTY,
        rows=min(ROWS, 1 + max(node.row for node in made)),
        marked=[0, *found.line(found.at)],
        follows=True,
        on_pick=lambda node: branch_history.put(found.stand(node)),
    )
    if found.leaves():
        _table(opened, found, chances)


def nodes(opened: Opened, found: Branches, chances: Sequence[float]) -> list[Node]:
    """The first branch goes straight on, each later one begins a row of its own."""
    rows, last = _rows(found), ends(opened)
    made = [Node(-1, 0, 0, "start", "", "Where writing begins", "start")]
    for place, node in enumerate(found.nodes[1:], 1):
        column = found.depths[place]
        chance = three(math.exp(chances[place]))
        how = "ended" if node.token in last else "forced" if node.forced else ""
        who = "forced" if node.forced else "drawn"
        said = f"{{token}} is token {column}, {who}; the model gave it {chance}"
        label = opened.tokenizer.label(node.token)
        made.append(Node(node.parent, column, rows[place], label, chance, said, how))
    return made


def in_a_line(text: str) -> str:
    """A text for a cell of a table, its line ends to be seen."""
    return text.replace("\n", " ↵ ").strip(" ") or "∅"


def _rows(found: Branches) -> list[int]:
    rows, taken = [0], 0
    for place, node in enumerate(found.nodes[1:], 1):
        is_first = next(iter(found.children[node.parent].values())) == place
        taken += not is_first
        rows.append(rows[node.parent] if is_first else taken)
    return rows


def _table(opened: Opened, found: Branches, chances: Sequence[float]) -> None:
    leaves = found.leaves()
    lines = [found.line(leaf) for leaf in leaves]
    totals = [sum(chances[node] for node in line) for line in lines]
    st.dataframe(
        {
            "branch": [
                in_a_line(opened.tokenizer.decode([found.nodes[node].token for node in line]))
                for line in lines
            ],
            "tokens": [len(line) for line in lines],
            "log-probability": [three(total) for total in totals],
            "a token": [three(t / len(line)) for t, line in zip(totals, lines, strict=True)],
        },
        hide_index=True,
        height=38 + 35 * min(len(leaves), 5),
        width=widgets.WIDEST,
    )
    st.caption("Log-probabilities are the model's own, in nats, whatever the temperature.")
