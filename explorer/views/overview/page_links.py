"""The links of the picture of the pass: each part of a block, and each edge, leads to a page.

The link chooses the layer, the head and the tokens of the picture on that page. What a browser
reports is checked: a link to something that does not exist in this model and text opens nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from explorer.analysis.forward_pass.stage import Stage
from explorer.analysis.forward_pass.stages import stages_of
from explorer.app import widget_state
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.page_table import ROWS
from explorer.app.session import session, state_of
from explorer.components import events
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.mask_examples import YOURS
from explorer.views.attention.head_steps_view import UP_TO
from explorer.views.interventions.edit_forms import FORMS
from explorer.views.shared import pinned
from explorer.views.shared.pass_position import STAGE_CHOICES, StageBar, query_of
from explorer.views.shared.pinned import PinnedCell

HERE, STAGES = "overview", "forward_pass"
TITLES = {
    name: ROWS[name].title
    for name in ("attention", "head_steps", "query_key", "masks", STAGES, "interventions")
}
"""The pages that a link may lead to."""
ADDRESS: dict[str, tuple[str, tuple[str, ...]]] = {
    "head_steps": ("up_to", UP_TO),
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
        pinned.pin(link.cell)
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
