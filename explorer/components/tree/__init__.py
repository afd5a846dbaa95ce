"""A tree of tokens from left to right: columns are steps, and lines connect a token to the next.

Pointing at a node shows its sentence, a click or Enter picks it, and Tab goes to the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.charts.figure_data import Figure, TableData, Value
from explorer.components import events, wire
from explorer.components.mounting import View
from explorer.text.token_labels import Label, text_of, texts

TREE_HTML = """
<div class="view tree">
  <div class="head"><div class="sentence idle"></div></div>
  <div class="stage"><div class="field"></div></div>
</div>
"""
TREE_ROW, AROUND_TREE = 32, 48

_VIEW = View("tree", TREE_HTML)


@dataclass(frozen=True)
class Node:
    """A token at a place; `parent` is the place of another node in the list, or −1.

    `how` is "" or one of the looks of view.css: "cut", "ended", "forced", "start". `sentence`
    is shown while it is pointed at; {token} in it is the label.
    """

    parent: int
    column: int
    row: int
    label: Label
    number: str
    sentence: str
    how: str = ""


def tree(
    nodes: Sequence[Node],
    *,
    key: str,
    title: str,
    idle: str,
    rows: int,
    marked: Sequence[int] = (),
    follows: bool = False,
    on_pick: Callable[[int], None] | None = None,
) -> None:
    """Draw it, `rows` high whatever is in it; `marked` nodes are the way that is on screen.

    `title` names it where it is exported. Where it `follows`, the end of that way is scrolled
    into sight.
    """

    def figures() -> list[Figure]:
        columns: dict[str, list[Value]] = {
            "node": [*range(len(nodes))],
            "parent": [None if node.parent < 0 else node.parent for node in nodes],
            "token": [*texts([node.label for node in nodes])],
            "number": [node.number for node in nodes],
        }
        return [TableData(columns, title)]

    header: dict[str, Any] = {
        "name": key,
        "idle": idle,
        "marked": list(marked),
        "follows": follows,
        "nodes": [
            {
                **wire.fields(node, "parent number sentence how"),
                "at": [node.column, node.row],
                "label": text_of(node.label),
            }
            for node in nodes
        ],
    }
    _VIEW(
        half=True,
        figures=figures,
        title=title,
        key=key,
        data=wire.pack(header),
        height=TREE_ROW * rows + AROUND_TREE,
        on_picked_change=events.on_place(key, "picked", len(nodes), on_pick),
    )
