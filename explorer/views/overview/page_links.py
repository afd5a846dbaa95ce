"""The links of the picture of the pass: each part of a block, and each edge, leads to a page.

There the layer, the head and the tokens of the picture are chosen. What a browser reports is
checked as a whole: what does not exist in this model and text opens nothing.
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
from explorer.components.pass_map import PartLink
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.mask_parts import YOURS
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
"""By page: what a link may choose there besides, and its values. Of the Forward pass page it is
the `stage`, any of the model."""
LEADS: dict[str, tuple[str, dict[str, str]]] = {
    "scores": ("head_steps", {"up_to": "scaled"}),
    "bias": ("head_steps", {"up_to": "masked"}),
    "masked": ("masks", {"example": YOURS}),
    "weights": ("attention", {}),
    "head out": ("head_steps", {"up_to": "values"}),
}
"""By the kind of a stage: the page that shows it best, and what is chosen there."""


@dataclass(frozen=True)
class PageLink:
    """An opened link, checked: a page of `TITLES`, or this one, and all that is chosen there."""

    page: str
    part: str
    layer: int
    head: int
    found: PinnedCell
    address: Mapping[str, str] = field(default_factory=dict)


def link_of_stage(stage: Stage) -> PartLink:
    """Where a part of a block leads: a page of its head, else its stage of the forward pass.

    Queries and keys lead to their page as the scores are made of them; the values before a norm
    or a rotation are shown by their stage.
    """
    page, address = LEADS.get(stage.kind, (STAGES, {"stage": stage.name}))
    tail = stage.name.split(".")[-1]
    if stage.part and tail in ("q", "k"):
        page, address = "query_key", {}
    elif stage.part and tail == "v":
        page, address = "head_steps", {"up_to": "values"}
    return PartLink(page, TITLES[page], address)


def checked_link(forward: ForwardPass, value: Any) -> PageLink | None:
    """What a browser reports as an opened link, if all of it exists in this pass.

    A dictionary of `page`, `part`, `layer`, `head`, `query`, `key` (None where no token is meant)
    and `address`. None for anything else.
    """
    if not isinstance(value, dict) or value.get("page") not in (HERE, *TITLES):
        return None
    page, asked = str(value["page"]), value.get("address") or {}
    parts = {part.name: part for part in forward.parts}
    part = parts.get(value["part"]) if isinstance(value.get("part"), str) else None
    address = _checked_address(forward, page, asked)
    if part is None or address is None:
        return None
    layer = events.place(value.get("layer"), part.layers)
    head = events.place(value.get("head"), part.heads)
    counts = len(forward.rows(part.name)), len(forward.columns(part.name))
    tokens = value.get("query"), value.get("key")
    query, key = (events.place(*each) for each in zip(tokens, counts, strict=True))
    if layer is None or head is None or (query, key) != tokens:
        return None
    return PageLink(page, part.name, layer, head, PinnedCell(query, key), address)


def _checked_address(forward: ForwardPass, page: str, asked: Any) -> dict[str, str] | None:
    """What is chosen on the page besides head and tokens; None where there is no such thing."""
    if not isinstance(asked, dict) or not all(isinstance(each, str) for each in asked.values()):
        return None
    name, values = ADDRESS.get(page, ("", ()))
    if page == STAGES:
        name, values = "stage", tuple(stage.name for stage in stages_of(forward.config))
    is_known = all(each == name and text in values for each, text in asked.items())
    return dict(asked) if is_known else None


def open_link(context: PageContext, value: Any) -> None:
    """For a callback: the page of a link in this run, with its layer, head and tokens chosen."""
    link = checked_link(context.forward, value)
    if link is None:
        return
    reader = session()
    layer, address = link.layer, dict(link.address)
    stage = address.pop("stage", "")
    if stage:
        layer = _choose_stage(context, link, stage)
    choose_head(layer, link.head, link.part)
    if str(link.found):
        pinned.pin(link.found)
        if link.found.key is None and link.page == "query_key":
            widget_state.forget("key")  # the key that this query attends to most
    if link.page == "interventions" and link.found.is_cell:
        address = {"change": "Edge", **address}
    for name in address:  # what was chosen there before gives way
        widget_state.forget(name)
        reader.defaults.pop(name, None)
    if link.page != HERE:
        reader.next_page, reader.next_address = link.page, address


def _choose_stage(context: PageContext, link: PageLink, stage: str) -> int:
    """The stage and its token are chosen on the Forward pass page; the layer that it is of."""
    forward = context.forward
    named = {each.name: each for each in stages_of(forward.config)}
    own = named[stage].layer
    layer = link.layer if own is None or named[stage].stack != link.part.split(".")[0] else own
    STAGE_CHOICES.put("stage", stage)
    state_of(StageBar).at = context.choice.model, link.part, layer
    if link.found.query is not None:
        STAGE_CHOICES.put(query_of(link.part), str(link.found.query))
    return layer
