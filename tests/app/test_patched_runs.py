"""The patches of Streamlit about its runs do what they say: who waits, fragments, clicks."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from urllib.parse import parse_qsl

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner, ScriptRunnerEvent
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests
from streamlit.runtime.state import SessionState
from streamlit.runtime.state import query_params as streamlit_query_params
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import WStates
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

import app
from explorer.app import streamlit_patches
from explorer.components import matrix  # noqa: F401  (a view installs what it needs)
from explorer.system import cooperative
from tests.server.hostile_values import of_another_kind


def run_that_waits() -> None:
    """The script of a reader who goes away while it waits for something."""
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    from explorer.app import streamlit_patches

    st.text("before")
    streamlit_patches.end_if_unwanted()
    st.text("waited")
    get_script_run_ctx().script_requests.request_stop()  # type: ignore[union-attr]
    streamlit_patches.end_if_unwanted()
    raise AssertionError("it goes on")


def test_a_run_that_waits_ends_when_its_reader_has_gone() -> None:
    at = AppTest.from_function(run_that_waits).run()
    assert not at.exception
    assert [each.value for each in at.text] == ["before", "waited"]
    streamlit_patches.end_if_unwanted()  # in a thread that nobody reads


class Left(BaseException):
    """What ends a run, as Streamlit's own do."""


def test_from_the_start_on_a_reader_who_waits_may_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start() -> None:
        async with app.lifespan(app.app):
            pass

    monkeypatch.setattr(app.housekeeping, "WarmUp", Mock)
    monkeypatch.setattr(streamlit_patches, "end_if_unwanted", Mock(side_effect=Left))
    monkeypatch.setattr(cooperative, "_cancel_check", cooperative._cancel_check)
    with ThreadPoolExecutor(1) as thread:  # a browser of other tests runs a loop in this one
        thread.submit(asyncio.run, start()).result()
    budget = cooperative.Budget(lambda: 1)
    with budget.spend(1), pytest.raises(Left), budget.spend(1):
        raise AssertionError("it was not spent")


CLICK = WidgetState(id="view", json_trigger_value='{"event": "picked"}')
MOVED = WidgetState(id="slider", int_value=3)


def runs_of(request: Any, drawn: str, state: WidgetState, **asked: Any) -> list[RerunData]:
    """What a session runs that drew this page last, when a browser asks this of page a."""
    runs = list[RerunData]()
    session = SimpleNamespace(_state=None, _scriptrunner=None, session_state=SessionState())
    session._client_state = ClientState(page_script_hash=drawn)
    session._pages_manager = SimpleNamespace(main_script_hash="app")
    session._create_scriptrunner, session.has_fragment = runs.append, lambda _: False
    states = WidgetStates(widgets=[state])
    request(session, ClientState(page_script_hash="a", widget_states=states, **asked))
    return runs


def test_a_fragment_of_a_lost_session_has_the_whole_page_drawn() -> None:
    elsewhere: Any = {"fragment_id": "elsewhere", "is_auto_rerun": True}
    (run,) = runs_of(AppSession.request_rerun, "", MOVED, **elsewhere)
    assert (run.fragment_id, run.is_auto_rerun, run.page_script_hash) == (None, False, "a")
    assert run.widget_states is not None
    assert [state.int_value for state in run.widget_states.widgets] == [3]
    assert not runs_of(AppSession.request_rerun, "a", MOVED, **elsewhere), "one that is gone"
    left = runs_of(streamlit_patches.STREAMLITS_REQUEST, "", MOVED, **elsewhere)
    assert not left, "Streamlit draws the page: draw_page_of_session may go"


def test_a_click_on_the_page_that_one_leaves_does_not_lead_back() -> None:
    ours, left = AppSession.request_rerun, "Streamlit stays too: draw_page_of_session may go"
    assert [run.page_script_hash for run in runs_of(ours, "b", CLICK)] == ["b"]
    assert [run.page_script_hash for run in runs_of(ours, "b", MOVED)] == ["a"], "a link"
    assert [run.page_script_hash for run in runs_of(ours, "app", CLICK)] == ["a"], "its first run"
    (run,) = runs_of(streamlit_patches.STREAMLITS_REQUEST, "b", CLICK)
    assert run.page_script_hash == "a", left


BOUND = """
import streamlit as st
if "view" not in st.session_state:  # chosen where it is not drawn
    st.session_state["view"] = "a"
    st.stop()
st.radio("View", ["a", "b"], key="view", bind="query-params")
"""


def settled(
    at: AppTest, address: str, view: str, sent: str = "", **asks: Any
) -> tuple[str, list[str]]:
    """Where a request settles, and what its browser is sent; `sent` came since it last asked."""
    told, state = list[str](), at.session_state._state._state
    if sent:
        run = SimpleNamespace(query_string="", page_script_hash="a", enqueue=lambda _: None)
        with pytest.MonkeyPatch.context() as patch:
            for module in (streamlit_patches, streamlit_query_params):
                patch.setattr(module, "get_script_run_ctx", lambda **_: run)
            state.query_params._query_params = dict(parse_qsl(sent))
            state.query_params._send_query_param_msg()
    session: Any = SimpleNamespace(
        session_state=state,
        _client_state=ClientState(page_script_hash="a"),
        _enqueue_forward_msg=lambda message: told.append(message.page_info_changed.query_string),
    )
    states = WidgetStates(widgets=[WidgetState(id=at.radio[0].proto.id, string_value=view)])
    asked = {"page_script_hash": "a"} | asks
    request = ClientState(query_string=address, widget_states=states, **asked)
    streamlit_patches.settle_address(session, request)
    return request.query_string, told


def test_an_address_has_the_values_that_come_with_it() -> None:
    at = AppTest.from_string(BOUND).run().run()
    both = "layer=3&view=b"
    assert settled(at, "layer=3", "b") == (both, []), "the browser may know more by now"
    assert settled(at, both, "a") == ("layer=3", []), "the default is not named"
    assert settled(at, "layer=3&view=a", "a") == ("layer=3&view=a", []), "as the reader typed it"
    assert settled(at, "layer=3", "b", sent="layer=3") == (both, [both]), "it took the choice away"
    assert settled(at, both, "b") == (both, []), "the browser has it"
    crossed = "model=x&view=b"
    assert settled(at, "view=b", "b", sent="model=x") == (crossed, [crossed]), "it is on its way"
    assert settled(at, "view=b", "b") == (crossed, [crossed]), "it is so still"
    assert settled(at, crossed, "b") == (crossed, [])
    for way in ({"page_script_hash": "b"}, {"is_history_navigation": True}):
        assert settled(at, "", "b", sent="layer=3", **way) == ("", []), "to another address"
        assert settled(at, "view=b", "b") == ("view=b", []), "an address is forgotten there"


def test_a_click_that_the_address_lacks_is_restored_by_streamlit() -> None:
    at = AppTest.from_string(BOUND).run().run()
    at.radio[0].set_value("b")
    at.run()
    assert at.radio[0].proto.set_value, "it does not: settle_address may go"


REFUSED = """
import streamlit as st

@st.fragment
def part():
    st.text("part")

st.text("above")
if st.session_state.get("is_refused"):
    st.stop()
part()
"""
"""A page that ends in its middle, where a moment before it had a part that is drawn alone."""


def parts_of(at: AppTest) -> list[str]:
    return [*at._fragment_storage._fragments]


def ask_behind(at: AppTest, parts: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The browser asks for these parts of the page that it has left; the pages it is told of."""
    told: list[str] = []
    ask = LocalScriptRunner.request_rerun

    def of_parts(runner: LocalScriptRunner, asked: RerunData) -> bool:
        def hear(_: object, event: object, page_script_hash: str = "", **_more: object) -> None:
            if event is ScriptRunnerEvent.SCRIPT_STARTED:
                told.append(page_script_hash)

        runner._requests = type(runner._requests)()  # it began with a whole page
        runner.on_event.connect(hear, weak=False)
        return ask(runner, replace(asked, fragment_id_queue=parts, page_script_hash="left"))

    with monkeypatch.context() as patch:
        patch.setattr(LocalScriptRunner, "request_rerun", of_parts)
        at.run()
    return told


def test_a_part_is_drawn_only_where_the_page_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    at = AppTest.from_string(REFUSED).run()
    part, here = parts_of(at), at._finished_page_script_hash
    assert len(part) == 1
    assert ask_behind(at, [*part, "gone"], monkeypatch) == [here]
    assert ask_behind(at, ["gone"], monkeypatch) == [], "a blank page"
    at.session_state["is_refused"] = True
    at.run()
    assert [each.value for each in at.text] == ["above"]
    assert ask_behind(at, part, monkeypatch) == [], "a place that is not there"
    monkeypatch.setattr(ScriptRunner, "_run_script", streamlit_patches.STREAMLITS_RUN)
    at.session_state["is_refused"] = False
    at.run()
    at.session_state["is_refused"] = True
    at.run()
    left = "Streamlit draws what is there: run_script may go"
    assert parts_of(at) == part, left
    assert ask_behind(at, ["gone"], monkeypatch) == ["left"], left


def merged(page: str = "b", **asked: Any) -> RerunData:
    """What is run when this is asked of page a while page b waits, or the page that is shown."""
    requests = ScriptRequests()
    whole = RerunData(page_script_hash=page, query_string="of b", is_history_navigation=bool(page))
    part = RerunData(page_script_hash="a", query_string="of a", **asked)
    assert all(map(requests.request_rerun, (whole, part)))
    return requests.on_scriptrunner_ready().rerun_data


def test_what_asks_from_another_page_does_not_lead_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asks: Any = [{"fragment_id": "part"}, {"widget_states": WidgetStates(widgets=[CLICK])}]
    for asked in asks:
        run = merged(**asked)
        assert (run.page_script_hash, run.query_string, run.fragment_id_queue) == ("b", "of b", [])
        assert run.is_history_navigation
        assert merged("", **asked).page_script_hash == "a", "no page was asked for"
    assert merged(widget_states=WidgetStates(widgets=[MOVED])).page_script_hash == "a", "a link"
    monkeypatch.setattr(ScriptRequests, "_request_rerun_locked", streamlit_patches.STREAMLITS_QUEUE)
    for asked in asks:
        assert merged(**asked).page_script_hash == "a", "Streamlit turns to the page: queue may go"


def test_clicks_while_a_run_goes_on_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message looks through all that waits: with 80,000 the loop stood still for a second."""

    def waiting() -> list[str]:
        requests = ScriptRequests()
        for number in range(10):
            said = [WidgetState(id=f"{number}-{each}", trigger_value=True) for each in range(200)]
            typed = WidgetState(id=f"typed-{number}", string_value="cat")
            states = WidgetStates(widgets=[typed, *said])
            requests.request_rerun(RerunData(widget_states=states))
        requests.request_rerun(RerunData())
        states = requests.on_scriptrunner_ready().rerun_data.widget_states or WidgetStates()
        return [each.id for each in states.widgets]

    last = ["typed-9", *(f"9-{each}" for each in range(200))]
    assert waiting() == last + [f"8-{each}" for each in range(streamlit_patches.CLICKS)]
    monkeypatch.setattr(ScriptRequests, "_request_rerun_locked", streamlit_patches.STREAMLITS_QUEUE)
    assert len(waiting()) == 2_001, "Streamlit bounds them: the first lines of queue may go"


def test_behind_what_is_not_sent_the_whole_page_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is run for a part when the run before has ended and is not all sent."""
    runs: list[RerunData] = []
    session = Mock(
        _scriptrunner=Mock(request_rerun=lambda _: False),
        _pages_manager=Mock(current_page_script_hash="b"),
    )
    monkeypatch.setattr(streamlit_patches, "STREAMLITS_RUNNER", lambda _, asked: runs.append(asked))
    session._create_scriptrunner = partial(AppSession._create_scriptrunner, session)
    asked = ClientState(fragment_id="part", page_script_hash="a", is_auto_rerun=True)
    AppSession.request_rerun(session, asked)
    (run,) = runs
    assert (run.fragment_id, run.is_auto_rerun, run.page_script_hash) == (None, False, "b")


CLICKED = """
import streamlit as st
from streamlit.runtime.state import get_session_state
from explorer.app import streamlit_patches

def clicked():
    st.session_state["told"] = True

for state in st.session_state.pop("sent", []):  # what the browser sent with the first run
    get_session_state()._state._new_widget_state.set_widget_from_proto(state)
held = streamlit_patches.hold_actions() if "drawn" not in st.session_state else []
st.session_state["drawn"] = st.session_state.get("drawn", 0) + 1
if st.button("Click", key="button", on_click=clicked):
    st.text(f"clicked in run {st.session_state['drawn']}")
streamlit_patches.run_again_with(held)
"""


def test_what_was_clicked_before_a_session_drew_anything_is_done_after() -> None:
    sent = WidgetState(id=AppTest.from_string(CLICKED).run().button[0].proto.id, trigger_value=True)
    new = AppTest.from_string(CLICKED)
    new.session_state["sent"] = [sent]
    new.run()
    assert [each.value for each in new.text] == ["clicked in run 2"]
    assert new.session_state["told"]


def widget_told(state: WidgetState, kind: Any, take: Any) -> WStates:
    """A widget of this kind, which reads a value with `take`, and what a message says of it."""
    states = WStates()
    states.set_widget_metadata(WidgetMetadata("field", take, str, value_type=kind))
    state.id = "field"
    states.set_widget_from_proto(state)
    return states


def test_a_value_that_no_browser_sends_is_none() -> None:
    def take(value: str | None) -> str:
        return "default" if value is None else value.upper()

    for state in (*of_another_kind("string_value"), WidgetState()):
        states = widget_told(state, "string_value", take)
        for _ in range(2):
            assert streamlit_patches.value_of(states, "field") == "default", state
    typed = widget_told(WidgetState(string_value="abc"), "string_value", take)
    assert streamlit_patches.value_of(typed, "field") == "ABC"
    number = widget_told(WidgetState(int_value=5), "string_value", lambda value: value)
    assert streamlit_patches.STREAMLITS_VALUE(number, "field") == 5, "Streamlit takes what comes"
    # Streamlit registers a field for whole numbers as one that sends others.
    whole = widget_told(WidgetState(int_value=7), "double_value", lambda value: value or 0)
    assert streamlit_patches.value_of(whole, "field") == 7


def test_what_the_reader_of_a_widget_fails_on_is_none() -> None:
    for text in ("{", "[" * 100_000):
        states = widget_told(WidgetState(json_value=text), "json_value", lambda value: value or {})
        assert streamlit_patches.value_of(states, "field") == {}
    with pytest.raises(KeyError):
        streamlit_patches.value_of(WStates(), "field")
