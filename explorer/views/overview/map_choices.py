"""What a reader chooses in the picture of the pass: a selection, and the links to other pages.

The selection is an answer, a token, an open block, an edge, and the address has all of it. The edge
is the chosen head and the pinned cell of the other pages, and the answer is their output position.
A link leads from a part of a block, or from an edge, to a page, and chooses the layer, the head and
the tokens there. What a browser reports is checked: a link to something that does not exist in this
model and text opens nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from explorer.analysis.forward_pass.stage import Stage
from explorer.analysis.forward_pass.stages import stages_of
from explorer.app import widget_state
from explorer.app.address import whole_number
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import choose
from explorer.app.messages import say
from explorer.app.page_table import ROWS
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.session import session, state_of
from explorer.components import events
from explorer.components.pass_map import PassMap
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.mask_examples import YOURS
from explorer.text.visible_text import cut
from explorer.views.attention.head_steps_view import UP_TO
from explorer.views.interventions.edit_forms import FORMS
from explorer.views.shared.pass_position import STAGE_CHOICES, StageBar, query_of
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


HERE, STAGES = "overview", "forward_pass"
TITLES = {
    name: ROWS[name].title
    for name in ("attention", "head_steps", "query_key", "masks", STAGES, "interventions")
}
"""The pages that a link may lead to."""
ADDRESS: dict[str, tuple[str, tuple[str, ...]]] = {
    "head_steps": ("up_to", tuple(UP_TO)),
    "masks": ("example", (YOURS,)),
    "interventions": ("change", tuple(FORMS)),
}
"""By page, what else a link may choose there, and its values. On the Forward pass page it is the
`stage`, any of the model."""
LEADS: dict[str, tuple[str, dict[str, str]]] = {
    "scores": ("head_steps", {"up_to": "scaled"}),
    "bias": ("head_steps", {"up_to": "masked"}),
    "masked": ("masks", {"example": YOURS}),
    "weights": ("attention", {}),
    "head out": ("head_steps", {"up_to": "values"}),
}
"""By the kind of a stage, the page that shows it best, and what the link chooses there."""


@dataclass(frozen=True)
class PageLink:
    """A checked link: a page of `TITLES` or this one, and all that the link chooses there."""

    page: str
    part: str
    layer: int
    head: int
    cell: PinnedCell
    address: Mapping[str, str] = field(default_factory=dict)


def link_of_stage(stage: Stage) -> dict[str, Any]:
    """The link of a part of a block: to a page of its head, else to its stage of the forward pass.

    Queries and keys that the scores are computed from lead to their page; queries and keys before
    a norm or a rotation lead to their stage.
    """
    page, address = LEADS.get(stage.kind, (STAGES, {"stage": stage.name}))
    tail = stage.name.split(".")[-1]
    if stage.part and tail in ("q", "k"):
        page, address = "query_key", {}
    elif stage.part and tail == "v":
        page, address = "head_steps", {"up_to": "values"}
    return {"page": page, "opens": TITLES[page], "address": address}


def checked_link(forward: ForwardPass, value: Any) -> PageLink | None:
    """The link that a browser reports, if all of it exists in this pass; None for anything else.

    It has `page`, `part`, `layer`, `head`, `query`, `key` (None for no token) and `address`.
    """
    if not isinstance(value, dict) or value.get("page") not in (HERE, *TITLES):
        return None
    page, choices = str(value["page"]), value.get("address") or {}
    parts = {part.name: part for part in forward.parts}
    part = parts.get(value["part"]) if isinstance(value.get("part"), str) else None
    address = _checked_address(forward, page, choices)
    if part is None or address is None:
        return None
    layer = events.place(value.get("layer"), part.layers)
    head = events.place(value.get("head"), part.heads)
    counts = len(forward.rows(part.name)), len(forward.columns(part.name))
    tokens = value.get("query"), value.get("key")
    query, key = (events.place(*pair) for pair in zip(tokens, counts, strict=True))
    if layer is None or head is None or (query, key) != tokens:
        return None
    return PageLink(page, part.name, layer, head, PinnedCell(query, key), address)


def _checked_address(forward: ForwardPass, page: str, choices: Any) -> dict[str, str] | None:
    """What a link chooses on the page besides head and tokens; None if that does not exist."""
    if not isinstance(choices, dict) or not all(isinstance(text, str) for text in choices.values()):
        return None
    name, values = ADDRESS.get(page, ("", ()))
    if page == STAGES:
        name, values = "stage", tuple(stage.name for stage in stages_of(forward.config))
    exists = all(choice == name and text in values for choice, text in choices.items())
    return dict(choices) if exists else None


def open_link(context: PageContext, value: Any) -> None:
    """For a callback: open the page of a link in this run and choose its layer, head and tokens."""
    link = checked_link(context.forward, value)
    if link is None:
        return
    reader = session()
    layer, address = link.layer, dict(link.address)
    stage = address.pop("stage", "")
    if stage:
        layer = _choose_stage(context, link, stage)
    choose_head(layer, link.head, link.part)
    if str(link.cell):
        pin(link.cell)
        if link.cell.key is None and link.page == "query_key":
            widget_state.forget("key")  # the key that this query attends to most
    if link.page == "interventions" and link.cell.is_cell:
        address = {"change": "Edge", **address}
    for name in address:  # they replace what was chosen there before
        widget_state.forget(name)
        reader.defaults.pop(name, None)
    if link.page != HERE:
        reader.next_page, reader.next_address = link.page, address


def _choose_stage(context: PageContext, link: PageLink, name: str) -> int:
    """Choose the stage and its token on the Forward pass page; returns the layer of the stage."""
    forward = context.forward
    stage = next(stage for stage in stages_of(forward.config) if stage.name == name)
    is_of_stack = stage.stack == link.part.split(".")[0]
    layer = stage.layer if stage.layer is not None and is_of_stack else link.layer
    STAGE_CHOICES.put("stage", name)
    state_of(StageBar).at = context.choice.model, link.part, layer
    if link.cell.query is not None:
        STAGE_CHOICES.put(query_of(link.part), str(link.cell.query))
    return layer
