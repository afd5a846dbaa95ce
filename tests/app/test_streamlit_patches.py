"""Each patch of Streamlit does what it says, and Streamlit without it is still as bad."""

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import itertools
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest
import streamlit as st
import streamlit.components.v2.presentation as streamlit_presentation
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.components.v2.bidi_component import main as streamlit_components
from streamlit.config_option import ConfigOption
from streamlit.elements.widgets import file_uploader
from streamlit.errors import StreamlitAPIException
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Common_pb2 import FileURLs, FileURLsRequest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner, ScriptRunnerEvent
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.runtime.state import query_params as streamlit_query_params
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import WStates
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

import app
from explorer.app import local_reader, streamlit_patches
from explorer.catalog import uploads, waiting
from explorer.components import matrix  # noqa: F401  (a view installs what it needs)
from tests.apps import page
from tests.server.hostile_values import of_another_kind
from tests.source import ROOT, imports, python_files

OURS = streamlit_patches.plain_state("events", "view")
STREAMLITS = streamlit_presentation.make_bidi_component_presenter("events", "view")
FIRED: list[Any] = [
    None,
    [],
    [{"event": "picked", "value": [0, 1]}],
    [{"event": "picked", "value": 1}, {"event": "hidden", "value": None}],
    [{"event": "picked", "value": 1}, {"event": "picked", "value": 2}],
    [{"event": "kept", "value": "the state is stronger"}],
    ["no event", {"value": 3}, {"event": 4, "value": 5}, 6, None],
]


class States(dict[str, Any]):
    """As much of Streamlit's store of widgets as a presenter asks for."""

    widget_metadata: ClassVar = {"events": SimpleNamespace(value_type="json_trigger_value")}


def session(**fired: Any) -> Any:
    return SimpleNamespace(_new_widget_state=States(**fired))


def classes_of_looks(present: Any) -> set[type]:
    """The classes of what ten looks give."""
    looked_at = session(events=FIRED[2])
    return {type(present({}, looked_at)) for _ in range(10)}


def test_a_view_reads_as_streamlit_reads_it() -> None:
    for fired, state in itertools.product(FIRED, [{}, {"kept": 7}, None, "no mapping"]):
        looked_at = session(events=fired)
        assert OURS(state, looked_at) == STREAMLITS(state, looked_at), (fired, state)
    assert OURS({"kept": 7}, session()) == {"kept": 7}, "nothing was fired yet"


def test_looking_makes_no_class() -> None:
    """A class is garbage that only the collector finds, which is why Streamlit's is replaced."""
    assert classes_of_looks(OURS) == {dict}
    assert len(classes_of_looks(STREAMLITS)) == 10, "Streamlit is cheap now: plain_state may go"


def test_it_stands_where_streamlit_looks_for_it() -> None:
    assert streamlit_components.make_bidi_component_presenter is streamlit_patches.plain_state


def private(module: str) -> bool:
    """Whether it is a part of Streamlit that is not its public interface."""
    public = ("testing.v1", "proto.", "delta_generator.")
    name = module.removeprefix("streamlit.")
    return module.startswith("streamlit.") and not name.startswith(public) and name.count(".") > 0


def test_private_parts_are_touched_in_one_file_and_its_test() -> None:
    touching = {path for path in python_files() for module in imports(path) if private(module)}
    here = {"explorer/app/streamlit_patches.py", "tests/app/test_streamlit_patches.py"}
    # They stand before Streamlit's own door, and keep its own sessions.
    here |= {"tests/server/uploading.py", "tests/server/test_crowd.py"}
    assert {path.as_posix() for path in touching} == here
    app = python_files("app.py", "pages", "explorer")
    attributes = re.compile(r"_new_widget_state|cached_message_hashes|_script_run|\bst\._[a-z]")
    named = {path.as_posix() for path in app if attributes.search((ROOT / path).read_text("utf-8"))}
    assert named == {"explorer/app/streamlit_patches.py"}


def waiting_after_a_click() -> list[ForwardMsg]:
    """What is still in the queue of a fragment that is drawn again before any of it was sent."""
    queue = ForwardMsgQueue()
    for fragment in ("drawn again", "another", ""):
        whole = ForwardMsg(hash="known")
        whole.delta.fragment_id = fragment
        whole.delta.new_element.text.body = "the code of a view"
        whole.metadata.delta_path[:] = [0, len(queue)]
        queue.enqueue(script_run_context.create_reference_msg(whole))
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["drawn again"])
    return queue.flush()


def test_hashes_of_a_fragment_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = waiting_after_a_click()
    assert [message.metadata.delta_path[1] for message in waiting] == [1, 2]
    assert {message.ref_hash for message in waiting} == {"known"}
    make, clear = streamlit_patches.STREAMLITS_REFERENCE, streamlit_patches.STREAMLITS_CLEAR
    monkeypatch.setattr(script_run_context, "create_reference_msg", make)
    monkeypatch.setattr(ForwardMsgQueue, "clear", clear)
    left = "Streamlit takes hashes back too: take_hashes_back may go"
    assert len(waiting_after_a_click()) == 3, left


def test_the_theme_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each section is as Streamlit reads it; one without settings is not even there."""
    sections = [each.value for each in config.CustomThemeCategories]
    asked = list[str]()

    def count(section: str) -> dict[str, Any]:
        asked.append(section)
        return options(section)

    def theme() -> CustomThemeConfig:
        message = CustomThemeConfig()
        app_session._populate_theme_msg(message)
        for section in sections:
            place = message
            for name in section.split("."):
                place = getattr(place, name)
            app_session._populate_theme_msg(place, f"theme.{section}")
        return message

    options, once = config.get_options_for_section, theme()
    monkeypatch.setattr(config, "get_options_for_section", count)
    assert theme() == once
    assert asked == []
    monkeypatch.setattr(app_session, "_populate_theme_msg", streamlit_patches.STREAMLITS_THEME)
    assert theme() == once
    assert len(asked) == len(sections) + 1, "read_theme_once may go"


def test_the_installed_packages_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process the patch is installed; what it stands for looks every time."""
    looked: list[int] = []

    def look() -> Iterable[importlib.metadata.Distribution]:
        looked.append(1)
        return distributions()

    distributions = importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", look)
    page("overview/overview")
    count = len(looked)
    page("overview/overview")
    assert len(looked) == count <= 1
    patched: Any = manifest_scanner.scan_component_manifests
    unpatched = patched.__wrapped__
    for _ in range(2):
        unpatched()
    assert len(looked) == count + 2, "Streamlit keeps what it found: scan_packages_once may go"


@pytest.fixture
def usual_limit() -> Iterator[None]:
    """The server takes uploads as large as it does at first."""
    limit = streamlit_patches.UPLOAD_LIMIT
    before = config.get_option(limit), config.get_where_defined(limit)
    config.set_option(limit, 200, ConfigOption.DEFAULT_DEFINITION)
    yield
    config.set_option(limit, *before)


@pytest.mark.usefixtures("usual_limit")
def test_the_limit_of_uploads_follows_the_reader_unless_it_was_named() -> None:
    limit = streamlit_patches.UPLOAD_LIMIT
    for reader, server in [(200, 200), (700, 700), (200, 700), (900, 900)]:
        assert streamlit_patches.allow_uploads(reader) == reader
        assert config.get_option(limit) == server
    config.set_option(limit, 500, "the command line")
    for reader in (200, 700):
        assert streamlit_patches.allow_uploads(reader) == 500 == config.get_option(limit)
    with pytest.raises(StreamlitAPIException):  # the way that is not private
        st.set_option(limit, 700)


@pytest.mark.usefixtures("usual_limit")
def test_only_a_reader_at_this_machine_may_upload_more_than_200_megabytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server takes no more than somebody may; what is free later changes no form."""
    for is_local, free, reader, server in [
        (False, 3_000, 200, 200),
        (True, 400, 200, 200),
        (True, 3_000, 750, 750),
        (True, 1_200, 300, 750),
        (False, 3_000, 200, 750),
    ]:
        monkeypatch.setattr(local_reader, "is_local", lambda answer=is_local: answer)
        monkeypatch.setattr(uploads, "available_memory", lambda free=free: free * 10**6)
        at = page("models/checkpoints")
        monkeypatch.setattr(uploads, "available_memory", lambda: 10**12)
        for _ in range(2):
            form = at.file_uploader(key="uploaded_model_0")
            assert form.proto.max_upload_size_mb == reader
            assert config.get_option(streamlit_patches.UPLOAD_LIMIT) == server
            at.run()


def connected(session: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any]]:
    """A runtime to which only this session is connected, and what its page was run again for."""
    runs: list[Any] = []
    client = SimpleNamespace(client_context=SimpleNamespace(cookies={"explorer_reader": "key"}))
    found = SimpleNamespace(
        request_rerun=runs.append, _client_state="as it is", session_state=SessionState()
    )
    info = SimpleNamespace(session=found)
    running = SimpleNamespace(
        uploaded_file_mgr=MemoryUploadedFileManager(""),
        is_active_session=lambda name: name == session,
        get_client=lambda name: client if name == session else None,
        _session_mgr=SimpleNamespace(
            get_active_session_info=lambda name: info if name == session else None,
            get_session_info=lambda name: info if name == session else None,
        ),
    )
    monkeypatch.setattr(streamlit_patches.runtime, "exists", lambda: True)
    monkeypatch.setattr(streamlit_patches.runtime, "get_instance", lambda: running)
    return running, runs


def test_the_files_of_a_session_are_freed_and_its_page_is_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not streamlit_patches.is_connected("a"), "where nothing is served"
    assert not streamlit_patches.cookies_of("a")
    assert streamlit_patches.session_id() == ""
    for nothing in (streamlit_patches.run_again, lambda a: streamlit_patches.forget_file(a, "f")):
        nothing("a")
    running, runs = connected("a", monkeypatch)
    files = running.uploaded_file_mgr
    for name in "fg":
        files.add_file("a", UploadedFileRec(name, name, "", b"12345678"))
    one, two, other = (
        UploadedFile(files.file_storage["a"][name], FileURLs()) for name in ("f", "f", "g")
    )
    state = running._session_mgr.get_session_info("a").session.session_state
    state._old_state |= {"one": one, "none": None}
    state._new_widget_state.set_from_value("folder", [two, other])
    streamlit_patches.forget_file("a", "f")
    assert list(files.file_storage["a"]) == ["g"]
    assert [each.getvalue() for each in (one, two, other)] == [b"", b"", b"12345678"]
    for name in "ab":
        streamlit_patches.run_again(name)
        assert streamlit_patches.is_connected(name) is (name == "a")
    assert runs == ["as it is"]
    assert streamlit_patches.cookies_of("a") == {"explorer_reader": "key"}
    assert streamlit_patches.cookies_of("b") == {}


def test_a_folder_of_too_many_files_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AppSession, "_handle_file_urls_request", None)
    streamlit_patches.bound_files_of_an_upload()
    sent: list[ForwardMsg] = []
    session: Any = SimpleNamespace(
        id="a",
        _uploaded_file_mgr=MemoryUploadedFileManager(""),
        _enqueue_forward_msg=sent.append,
    )
    most = streamlit_patches.UPLOADS_AT_ONCE
    for answer in (AppSession._handle_file_urls_request, streamlit_patches.STREAMLITS_ADDRESSES):
        for count in (most, most + 1):
            answer(session, FileURLsRequest(request_id="b", file_names=["c"] * count))
    few, many, few_of_streamlit, many_of_streamlit = (each.file_urls_response for each in sent)
    assert (len(few.file_urls), few.error_msg) == (most, "")
    assert many.response_id == "b"
    assert many.error_msg.startswith("A folder may have at most 100 files, not 101: ")
    assert not many.file_urls
    assert len(few_of_streamlit.file_urls) == most
    assert len(many_of_streamlit.file_urls) == most + 1


def test_streamlit_keeps_the_files_of_who_left() -> None:
    """Where it does not, forget_file and what counts uploads may go."""
    shut_down = inspect.getsource(AppSession.shutdown)
    left = inspect.getsource(WebsocketSessionManager.disconnect_session)
    read = inspect.getsource(file_uploader)
    assert "remove_session_files" in shut_down
    assert "remove_session_files" not in left
    assert "remove_file" not in read
    assert [*inspect.signature(MemoryUploadedFileManager.remove_file).parameters][1:] == [
        "session_id",
        "file_id",
    ]


def page_without_its_list() -> None:
    """A page whose list is drawn unless it is told otherwise."""
    import streamlit as st

    from explorer.app import streamlit_patches

    told = st.session_state.get("told", "")
    if not told:
        st.selectbox("Layer", range(9), key="layer", bind="query-params")
    elif told == "keep":
        streamlit_patches.keep_in_address("layer")


def test_what_a_page_does_not_draw_stays_in_the_address() -> None:
    for told, left in (("keep", {"layer": "3"}), ("nothing", {})):
        at = AppTest.from_function(page_without_its_list)
        at.query_params["layer"] = "3"
        at.run()
        for _ in range(2):
            at.session_state["told"] = told
            at.run()
            assert at.session_state["layer"] == 3
        found = dict(at.query_params)
        assert found == left, "Streamlit keeps it by itself: keep_in_address may go"


def messages_of(change: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that are sent to the browser while this changes the parameters."""
    sent: list[str] = []
    run = SimpleNamespace(
        enqueue=lambda message: sent.append(message.page_info_changed.query_string)
    )
    state = SafeSessionState(SessionState(), lambda: None)
    monkeypatch.setattr(streamlit_query_params, "get_script_run_ctx", lambda: run)
    monkeypatch.setattr(streamlit_patches, "get_session_state", lambda: state)
    with state.query_params() as params:
        change(params)
    return sent


def test_what_is_changed_at_once_is_one_entry_in_the_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def change(params: Any) -> None:
        params["model"] = "bert"
        params["layer"] = "3"
        del params["layer"]

    def change_at_once(params: Any) -> None:
        with streamlit_patches.one_entry_in_history():
            change(params)
        with streamlit_patches.one_entry_in_history():
            pass

    assert messages_of(change_at_once, monkeypatch) == ["model=bert"]
    several = messages_of(change, monkeypatch)
    assert len(several) == 3, "Streamlit sends one by itself: one_entry_in_history may go"


def test_a_run_knows_whether_it_is_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not streamlit_patches.came_back(), "where nobody reads"
    for way in (True, False):
        run = SimpleNamespace(is_history_navigation=way)
        monkeypatch.setattr(streamlit_patches, "get_script_run_ctx", lambda run=run, **_: run)
        assert streamlit_patches.came_back() is way


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


def test_from_the_start_of_the_server_on_a_reader_who_waits_may_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def start() -> None:
        async with app.lifespan(app.app):
            pass

    monkeypatch.setattr(app, "WarmUp", Mock)
    monkeypatch.setattr(streamlit_patches, "end_if_unwanted", Mock(side_effect=Left))
    monkeypatch.setattr(waiting, "_end_if_unwanted", waiting._end_if_unwanted)
    with ThreadPoolExecutor(1) as thread:  # a browser of other tests runs a loop in this one
        thread.submit(asyncio.run, start()).result()
    budget = waiting.Budget(lambda: 1)
    with budget.spend(1), pytest.raises(Left), budget.spend(1):
        raise AssertionError("it was not spent")


def first_runs(request: Any, drawn: str = "") -> list[Any]:
    """What is run when a fragment asks that this session has never heard of."""
    runs = list[Any]()
    new = SimpleNamespace(
        _state=None,
        _scriptrunner=None,
        _client_state=ClientState(page_script_hash=drawn),
        _create_scriptrunner=runs.append,
        has_fragment=lambda _: False,
    )
    asked = ClientState(fragment_id="elsewhere", page_script_hash="a", is_auto_rerun=True)
    asked.widget_states.widgets.add(id="slider", int_value=3)
    request(new, asked)
    return runs


def test_a_fragment_of_a_lost_session_has_the_whole_page_drawn() -> None:
    streamlit_patches.draw_whole_page_first()
    (run,) = first_runs(AppSession.request_rerun)
    assert (run.fragment_id, run.is_auto_rerun, run.page_script_hash) == (None, False, "a")
    assert [state.int_value for state in run.widget_states.widgets] == [3]
    assert first_runs(AppSession.request_rerun, drawn="a") == [], "one that is gone from the page"
    left = "Streamlit draws the page: draw_whole_page_first may go"
    assert first_runs(streamlit_patches.STREAMLITS_REQUEST) == [], left


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


def test_a_part_that_asks_behind_another_page_does_not_lead_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drawn() -> RerunData:
        requests = ScriptRequests()
        whole = RerunData(page_script_hash="b", query_string="of b", is_history_navigation=True)
        part = RerunData(page_script_hash="a", query_string="of a", fragment_id="part")
        assert all(map(requests.request_rerun, (whole, part)))
        return requests.on_scriptrunner_ready().rerun_data

    run = drawn()
    assert (run.page_script_hash, run.query_string, run.fragment_id_queue) == ("b", "of b", [])
    assert run.is_history_navigation
    original = streamlit_patches.STREAMLITS_QUEUE
    monkeypatch.setattr(ScriptRequests, "_request_rerun_locked", original)
    assert drawn().page_script_hash == "a", "Streamlit turns to the page: queue may go"


def test_what_is_clicked_while_a_run_goes_on_does_not_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    original = streamlit_patches.STREAMLITS_QUEUE
    monkeypatch.setattr(ScriptRequests, "_request_rerun_locked", original)
    assert len(waiting()) == 2_001, "Streamlit bounds them: the first lines of queue may go"


def runs_behind_an_ended_one(monkeypatch: pytest.MonkeyPatch) -> list[RerunData]:
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
    return runs


def test_behind_what_is_not_sent_the_whole_page_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = runs_behind_an_ended_one(monkeypatch)
    assert (run.fragment_id, run.is_auto_rerun, run.page_script_hash) == (None, False, "b")
    source = inspect.getsource(AppSession._handle_scriptrunner_event_on_event_loop)
    left = "Streamlit sends it: create_scriptrunner may go"
    assert "if sender is not self._scriptrunner:" in source, left


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
    probe = AppTest.from_string(CLICKED).run()
    sent = WidgetState(id=probe.button[0].proto.id, trigger_value=True)
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

    for state in of_another_kind("string_value"):
        states = widget_told(state, "string_value", take)
        assert streamlit_patches.value_of(states, "field") == "default", state
        assert streamlit_patches.value_of(states, "field") == "default", "also a second time"
    number = widget_told(WidgetState(int_value=5), "string_value", lambda value: value)
    assert streamlit_patches.STREAMLITS_VALUE(number, "field") == 5, "Streamlit takes what comes"
    typed = widget_told(WidgetState(string_value="abc"), "string_value", take)
    assert streamlit_patches.value_of(typed, "field") == "ABC"
    assert (
        streamlit_patches.value_of(widget_told(WidgetState(), "string_value", take), "field")
        == "default"
    )


def test_a_field_for_whole_numbers_sends_them_as_such() -> None:
    """Streamlit registers it as one that sends others."""
    sent = widget_told(WidgetState(int_value=7), "double_value", lambda value: value or 0)
    assert streamlit_patches.value_of(sent, "field") == 7


def test_what_the_reader_of_a_widget_fails_on_is_none() -> None:
    for text in ("{", "[" * 100_000):
        states = widget_told(WidgetState(json_value=text), "json_value", lambda value: value or {})
        assert streamlit_patches.value_of(states, "field") == {}
    with pytest.raises(KeyError):
        streamlit_patches.value_of(WStates(), "field")
