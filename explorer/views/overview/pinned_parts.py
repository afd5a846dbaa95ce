"""The selection in the picture of the pass: an answer, a token, an open block, an edge.

The address has all of it. The edge is the chosen head and the pinned cell of the other pages, and
the answer is their output position.
"""

import re
from dataclasses import dataclass
from typing import Any

from explorer.app.address import whole_number
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import choose
from explorer.app.messages import say
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.session import session
from explorer.components.pass_map import PassMap
from explorer.text.visible_text import cut
from explorer.views.shared.pinned import PinnedCell, current_pin, pin
from explorer.views.shared.widgets import ANSWER

IN_ADDRESS = PersistentChoices("map", {"traced": "", "least": "", "block": ""})
LEAST, LEAST_USUAL = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5), 0.005
IN_STACK = re.compile(r"([ed])([0-9]{1,5})")
Place = tuple[int, int]
"""A stack of the picture, and one of its tokens or layers."""
NOWHERE = (-1, -1)


@dataclass(frozen=True)
class MapSelection:
    """The answer that is traced, or the token traced instead; the threshold; the open block."""

    answer: int
    traced: Place | None = None
    least: float = LEAST_USUAL
    block: Place | None = None


def current_selection(context: PageContext, picture: PassMap, usual: int) -> MapSelection:
    """The selection of the address or of another page; a note names what does not exist here."""
    is_new = IN_ADDRESS.is_new
    texts = {
        name: str(text) for store in (ANSWER, IN_ADDRESS) for name, text in store.texts().items()
    }
    tokens = [len(stack.tokens) for stack in picture.stacks]
    layers = [len(picture.flow.stacks[stack.name]) for stack in picture.stacks]
    least = [value for value in LEAST if f"{value:g}" == texts.get("least")]
    answer = whole_number(texts.get("answer", ""), len(picture.flow.starts))
    traced = _place(texts.get("traced", ""), picture, tokens)
    block = _place(texts.get("block", ""), picture, layers)
    values = {"answer": answer, "traced": traced, "least": least or None, "block": block}
    for name, text in texts.items():
        if is_new and text and values[name] is None:
            say(f"“{name}” cannot be “{cut(text, 20)}” in this text and model; it is left out.")
    selection = MapSelection(
        usual if answer is None else answer, traced, least[0] if least else LEAST_USUAL, block
    )
    address = address_values(selection, picture, usual)
    ANSWER.settle(address)
    IN_ADDRESS.settle(address)
    return selection


def address_values(selection: MapSelection, picture: PassMap, usual: int) -> dict[str, str]:
    """Its form in the address: answer=3, traced=d2, least=0.01, block=e0."""

    def name(place: Place | None) -> str:
        return "" if place is None else f"{picture.stacks[place[0]].name[0]}{place[1]}"

    return {
        "answer": "" if selection.answer == usual else str(selection.answer),
        "traced": name(selection.traced),
        "least": "" if selection.least == LEAST_USUAL else f"{selection.least:g}",
        "block": name(selection.block),
    }


def _place(text: str, picture: PassMap, counts: list[int]) -> Place | None:
    match = IN_STACK.fullmatch(text)
    for at, stack in enumerate(picture.stacks):
        if match and stack.name[0] == match[1] and int(match[2]) < counts[at]:
            return at, int(match[2])
    return None


def choice_of(selection: MapSelection, context: PageContext, picture: PassMap) -> list[float]:
    """The selection in the form of the picture, with the edge of the head and the pinned cell."""
    at, cell = context.choice, current_pin(context)
    parts = part_names(picture)
    edge = [-1] * 5
    if cell.is_cell and at.part in parts:
        edge = [parts.index(at.part), at.layer, cell.query or 0, cell.key or 0, at.head]
    return [
        selection.answer,
        *(selection.traced or NOWHERE),
        selection.least,
        *(selection.block or NOWHERE),
        *edge,
    ]


def part_names(picture: PassMap) -> list[str]:
    """The parts of all stacks, in the order in which the picture counts them."""
    return [part for stack in picture.stacks for part in stack.parts]


def select_reported(value: Any, picture: PassMap, usual: int) -> None:
    """For a callback: select what the picture reports, which may be anything."""
    if not isinstance(value, list) or len(value) != 11:
        return
    if not all(type(number) in (int, float) for number in value):
        return
    answer, *rest = value
    tokens = [len(stack.tokens) for stack in picture.stacks]
    layers = [len(picture.flow.stacks[stack.name]) for stack in picture.stacks]
    count = len(picture.flow.starts)
    selection = MapSelection(
        int(answer) if answer in range(count) else usual,
        _existing_place(rest[0], rest[1], tokens),
        rest[2] if rest[2] in LEAST else LEAST_USUAL,
        _existing_place(rest[3], rest[4], layers),
    )
    for name, text in address_values(selection, picture, usual).items():
        (ANSWER if name == "answer" else IN_ADDRESS).put(name, text)
    if count > 1:
        choose("expected_at", selection.answer)
    _choose_edge(rest[5:], picture)


def _existing_place(stack: float, place: float, counts: list[int]) -> Place | None:
    if stack in range(len(counts)) and place in range(counts[int(stack)]):
        return int(stack), int(place)
    return None


def _choose_edge(edge: list[float], picture: PassMap) -> None:
    """Choose the head of an edge, and pin its query and key."""
    part, layer, query, key, head = edge
    names = part_names(picture)
    if part not in range(len(names)):
        if session().persistent.get("pinned", {}).get("pinned"):
            pin(PinnedCell())
        return
    name = names[int(part)]
    shares = picture.flow.stacks[name.split(".")[0]]
    if layer not in range(len(shares)) or head not in range(picture.heads):
        return
    queries, keys = shares[int(layer)].attentions[name].keys.shape
    if query in range(queries) and key in range(keys):
        choose_head(int(layer), int(head), name)
        pin(PinnedCell(int(query), int(key)))
