"""The links of the picture of the pass: where each part leads, and what opens nothing."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.block_inside import block_inside
from explorer.app.session import SESSION_KEY, Session
from explorer.components.pass_map import PAGE_LINKS
from explorer.views.overview.map_choices import TITLES, PageLink, checked_link, link_of_stage
from explorer.views.shared.pass_position import StageBar
from explorer.views.shared.pinned import PinnedCell
from tests.analysis.kinds_of_model import KINDS_OF_MODEL
from tests.apps import run
from tests.components.flows import passed
from tests.source import ROOT

pytestmark = pytest.mark.usefixtures("small_models")
CROSS = {"part": "decoder.cross_attn", "layer": 0, "head": 1, "query": 0, "key": 2, "address": {}}


def asked(page: str = "attention", **changes: Any) -> dict[str, Any]:
    return {"page": page, **CROSS, **changes}


def test_a_door_is_what_the_browser_reports() -> None:
    forward = passed("both")[1]
    stage = {"stage": "decoder.0.mlp.up"}
    assert checked_link(forward, asked("forward_pass", address=stage)) == PageLink(
        "forward_pass", "decoder.cross_attn", 0, 1, PinnedCell(0, 2), stage
    )
    link = checked_link(forward, asked("overview", query=None, key=None, address=None))
    assert link == PageLink("overview", "decoder.cross_attn", 0, 1, PinnedCell(), {})
    edge = {name: value for name, value in asked("interventions").items() if name != "address"}
    assert checked_link(forward, edge) is not None, "an edge has no address"


HOSTILE: dict[str, list[Any]] = {
    "page": ["", "museum", "../etc", ["attention"], None, {}],
    "part": ["", "decoder", "encoder.cross_attn", None, 3, [], {}],
    "layer": [-1, 1, 1.0, "0", None, True, 10**30, [0]],
    "head": [-1, 2, 0.5, "1", None, False],
    "query": [-1, 99, 0.0, "0", True, [], float("nan")],
    "key": [-1, 99, 1.5, "0", {}],
    "address": ["stage", 3, [1], {"stage": "x"}, {"up_to": 1}, {"up_to": "scaled"}],
}
ADDRESSES = [
    ("head_steps", {"up_to": "everything"}),
    ("head_steps", {"up_to": "scaled", "model": "other"}),
    ("masks", {"example": "I am a student"}),
    ("interventions", {"change": "<b>"}),
    *(("forward_pass", {"stage": stage}) for stage in ("", "decoder.9.mlp.up", "__class__")),
    ("forward_pass", {"stage": "decoder.0.mlp.up\n"}),
]


def test_what_does_not_exist_opens_nothing() -> None:
    forward = passed("both")[1]
    hostile: list[Any] = [None, [], "attention", 3, {}, {"page": "attention"}]
    hostile += [asked() | {name: value} for name, some in HOSTILE.items() for value in some]
    hostile += [asked(page, address=address) for page, address in ADDRESSES]
    opened = [value for value in hostile if checked_link(forward, value) is not None]
    assert opened == []


@pytest.mark.parametrize("kind", KINDS_OF_MODEL)
def test_every_part_of_every_kind_of_model_leads_to_a_page_that_exists(kind: str) -> None:
    forward = passed(kind)[1]
    pages = {path.stem for path in ROOT.glob("pages/*/*.py")}
    assert {*TITLES, *PAGE_LINKS} <= pages
    for stack in forward.config.stacks:
        for part in block_inside(forward, stack, 0).parts:
            link = link_of_stage(part.stage)
            own = part.stage.stack == stack and part.stage.part
            where = {"part": own or f"{stack}.self_attn", "head": 0, "query": None, "key": None}
            event = asked(link["page"], **where, address=link["address"])
            assert checked_link(forward, event) is not None, part.name
            assert link["opens"] == TITLES[link["page"]]


def opening(value: object) -> None:
    """A page on which this link is opened."""
    import streamlit as st

    from explorer.app.context import page_context
    from explorer.views.overview.map_choices import open_link

    st.session_state.update(text="the black cat sleeps", model="translation", head=0)
    open_link(page_context(), value)


def opened(value: Any) -> tuple[AppTest, Session]:
    at = AppTest.from_function(opening, args=(value,), default_timeout=60)
    at.session_state["key"] = 3
    at.session_state["up_to"] = "scores"
    run(at)
    found: Session = at.session_state[SESSION_KEY]
    return at, found


def test_behind_a_door_head_and_tokens_are_chosen() -> None:
    at, session = opened(asked("head_steps", key=1, address={"up_to": "scaled"}))
    assert session.next_page == "head_steps"
    assert session.next_address == {"up_to": "scaled"}
    assert "up_to" not in at.session_state
    assert [at.session_state[name] for name in ("part", "layer", "head")] == [*CROSS.values()][:3]
    assert session.persistent["pinned"]["pinned"] == "q0k1"

    at, session = opened(asked("query_key", key=None))
    assert session.next_page == "query_key"
    assert at.session_state["query"] == 0
    assert "key" not in at.session_state, "the key that the query attends to most"

    _, session = opened(asked("interventions"))
    assert session.next_address == {"change": "Edge"}


def test_behind_a_door_to_the_forward_pass_its_stage_is_chosen() -> None:
    stage, part = "decoder.0.resid_mid", "decoder.self_attn"
    asks = asked("forward_pass", part=part, query=0, key=None, address={"stage": stage})
    _, session = opened(asks)
    assert session.next_page == "forward_pass"
    assert session.persistent["stages"]["stage"] == stage
    assert session.persistent["stages"]["decoder_token"] == "0"
    assert session.state(StageBar).at == ("translation", part, 0)
    assert session.next_address == {}


def test_a_head_chosen_in_the_picture_opens_no_page_and_what_is_wrong_changes_nothing() -> None:
    at, session = opened(asked("overview", query=None, key=None))
    assert session.next_page == ""
    assert at.session_state["head"] == 1
    at, session = opened(asked(head=99))
    assert session.next_page == ""
    assert at.session_state["head"] == 0
