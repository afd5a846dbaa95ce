"""What is held in the picture of the pass: an answer, a token, an open block, an edge.

The address repeats it. The edge is the chosen head and the pinned cell of every other page, and
the answer is their output position.
"""

import re
from dataclasses import dataclass
from typing import Any

from explorer.app.address import whole_number
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import choose_token
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
"""A stack of the map, and a token or layer of it."""
NOWHERE = (-1, -1)


@dataclass(frozen=True)
class MapSelection:
    """The answer that is traced, the token traced instead, the threshold, the open block."""

    answer: int
    traced: Place | None = None
    least: float = LEAST_USUAL
    block: Place | None = None


def current_selection(context: PageContext, picture: PassMap, usual: int) -> MapSelection:
    """What the address, or a page before, has held; what does not exist here is said."""
    is_new = IN_ADDRESS.is_new
    asked = {
        name: str(text) for each in (ANSWER, IN_ADDRESS) for name, text in each.texts().items()
    }
    tokens = [len(stack.tokens) for stack in picture.stacks]
    layers = [len(picture.flow.stacks[stack.name]) for stack in picture.stacks]
    least = [each for each in LEAST if f"{each:g}" == asked.get("least")]
    answer = whole_number(asked.get("answer", ""), len(picture.flow.starts))
    traced = _place(asked.get("traced", ""), picture, tokens)
    block = _place(asked.get("block", ""), picture, layers)
    there = {"answer": answer, "traced": traced, "least": least or None, "block": block}
    for name, text in asked.items():
        if is_new and text and there[name] is None:
            say(f"“{name}” cannot be “{cut(text, 20)}” in this text and model; it is left out.")
    found = MapSelection(
        usual if answer is None else answer, traced, least[0] if least else LEAST_USUAL, block
    )
    kept = written(found, picture, usual)
    ANSWER.settle(kept)
    IN_ADDRESS.settle(kept)
    return found


def written(found: MapSelection, picture: PassMap, usual: int) -> dict[str, str]:
    """As it stands in the address: answer=3, traced=d2, least=0.01, block=e0."""

    def name(place: Place | None) -> str:
        return "" if place is None else f"{picture.stacks[place[0]].name[0]}{place[1]}"

    return {
        "answer": "" if found.answer == usual else str(found.answer),
        "traced": name(found.traced),
        "least": "" if found.least == LEAST_USUAL else f"{found.least:g}",
        "block": name(found.block),
    }


def _place(text: str, picture: PassMap, counts: list[int]) -> Place | None:
    found = IN_STACK.fullmatch(text)
    for at, stack in enumerate(picture.stacks):
        if found and stack.name[0] == found[1] and int(found[2]) < counts[at]:
            return at, int(found[2])
    return None


def choice_of(found: MapSelection, context: PageContext, picture: PassMap) -> list[float]:
    """The same for the picture, and the edge of the chosen head and the pinned cell."""
    at, pinned = context.choice, current_pin(context)
    parts = part_names(picture)
    edge = [-1] * 5
    if pinned.is_cell and at.part in parts:
        edge = [parts.index(at.part), at.layer, pinned.query or 0, pinned.key or 0, at.head]
    return [
        found.answer,
        *(found.traced or NOWHERE),
        found.least,
        *(found.block or NOWHERE),
        *edge,
    ]


def part_names(picture: PassMap) -> list[str]:
    """The parts of all stacks, as the picture counts them."""
    return [part for stack in picture.stacks for part in stack.parts]


def hold(value: Any, picture: PassMap, usual: int) -> None:
    """For a callback: the picture holds this now; it may be anything."""
    if not isinstance(value, list) or len(value) != 11:
        return
    if not all(type(each) in (int, float) for each in value):
        return
    answer, *rest = value
    tokens = [len(stack.tokens) for stack in picture.stacks]
    layers = [len(picture.flow.stacks[stack.name]) for stack in picture.stacks]
    count = len(picture.flow.starts)
    found = MapSelection(
        int(answer) if answer in range(count) else usual,
        _checked(rest[0], rest[1], tokens),
        rest[2] if rest[2] in LEAST else LEAST_USUAL,
        _checked(rest[3], rest[4], layers),
    )
    for name, text in written(found, picture, usual).items():
        (ANSWER if name == "answer" else IN_ADDRESS).put(name, text)
    if count > 1:
        choose_token("expected_at", found.answer)
    _pick(rest[5:], picture)


def _checked(stack: float, place: float, counts: list[int]) -> Place | None:
    if stack in range(len(counts)) and place in range(counts[int(stack)]):
        return int(stack), int(place)
    return None


def _pick(edge: list[float], picture: PassMap) -> None:
    """An edge is the chosen head and the pinned cell from now on."""
    part, layer, query, key, head = edge
    names = part_names(picture)
    if part not in range(len(names)):
        if session().persistent.get("held", {}).get("held"):
            pin(PinnedCell())
        return
    name = names[int(part)]
    stack = name.split(".")[0]
    shares = picture.flow.stacks[stack]
    if layer not in range(len(shares)) or head not in range(picture.heads):
        return
    queries, keys = shares[int(layer)].attended[name].keys.shape
    if query in range(queries) and key in range(keys):
        choose_head(int(layer), int(head), name)
        pin(PinnedCell(int(query), int(key)))
