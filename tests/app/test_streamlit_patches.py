"""Each patch of Streamlit does what it says, and Streamlit without it is still as bad."""

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import streamlit as st
import streamlit.components.v2.presentation as streamlit_presentation
from streamlit import config
from streamlit.components.v2.bidi_component import main as streamlit_components
from streamlit.config_option import ConfigOption
from streamlit.errors import StreamlitAPIException
from streamlit.proto.Common_pb2 import FileURLs, FileURLsRequest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner_utils.exceptions import StopException
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.runtime.state import query_params as streamlit_query_params
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec
from streamlit.testing.v1 import AppTest

from explorer.app import streamlit_patches
from explorer.app.received_uploads import RECEIVED
from explorer.app.session import SESSION_KEY
from explorer.catalog import uploads
from explorer.components import matrix  # noqa: F401  (a view installs what it needs)
from explorer.system import limits
from tests.apps import FIRST, page
from tests.source import imports, python_files

streamlit_patches.install_in_server()  # as app.py does, which no test here starts
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


def test_a_view_reads_as_streamlit_reads_it() -> None:
    for fired, state in itertools.product(FIRED, [{}, {"kept": 7}, None, "no mapping"]):
        looked_at = session(events=fired)
        assert OURS(state, looked_at) == STREAMLITS(state, looked_at), (fired, state)
    assert OURS({"kept": 7}, session()) == {"kept": 7}, "nothing was fired yet"


def test_looking_makes_no_class() -> None:
    """A class is garbage that only the collector finds, which is why Streamlit's is replaced."""
    looked_at = session(events=FIRED[2])
    ours, theirs = ({type(look({}, looked_at)) for _ in range(9)} for look in (OURS, STREAMLITS))
    assert ours == {dict}
    assert len(theirs) == 9, "Streamlit is cheap now: plain_state may go"


def test_it_stands_where_streamlit_looks_for_it() -> None:
    assert streamlit_components.make_bidi_component_presenter is streamlit_patches.plain_state


def private(module: str) -> bool:
    """Whether it is a part of Streamlit that is not its public interface."""
    public = ("testing.v1", "proto.", "delta_generator.")
    name = module.removeprefix("streamlit.")
    return module.startswith("streamlit.") and not name.startswith(public) and name.count(".") > 0


def test_private_parts_are_touched_in_one_file() -> None:
    app = python_files("app.py", "pages", "explorer", "models")
    touching = {path.as_posix() for path in app if any(map(private, imports(path)))}
    assert touching == {"explorer/app/streamlit_patches.py"}


def waiting_after_a_click() -> list[str]:
    """What is still in the queue of a page whose fragment is drawn again before any was sent."""
    queue = ForwardMsgQueue()
    begun, drawn, known = ForwardMsg(), ForwardMsg(), ForwardMsg(ref_hash="known")
    begun.new_session.page_script_hash = "page"
    drawn.delta.fragment_id = "drawn again"
    drawn.delta.new_element.text.body = "a control"
    queue.enqueue(begun)
    for place, message in enumerate((drawn, known)):
        message.metadata.delta_path[:] = [0, place]
        queue.enqueue(message)
    queue.enqueue(ForwardMsg(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY))
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["drawn again"])
    queue.enqueue(drawn)
    return [str(message.WhichOneof("type")) for message in queue.flush()]


def test_a_fragment_drops_nothing_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ["new_session", "delta", "ref_hash", "script_finished"]
    assert waiting_after_a_click() == [*whole, "delta"]
    monkeypatch.setattr(ForwardMsgQueue, "clear", streamlit_patches.STREAMLITS_CLEAR)
    left = "Streamlit ends no page whose fragment it dropped: keep_waiting_messages may go"
    assert waiting_after_a_click() == ["new_session", "ref_hash", "script_finished", "delta"], left


def sent_whole(session: SessionState, messages: str) -> str:
    """Which of these messages the next run sends whole to a browser that names a and b."""
    state = SafeSessionState(session, lambda: None)
    run: Any = SimpleNamespace(session_state=state, cached_message_hashes=frozenset("ab"))
    ScriptRunContext.on_script_start(run)
    return "".join(each for each in messages if each not in run.cached_message_hashes)


def test_what_a_browser_may_forget_is_sent_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "get_option", {streamlit_patches.MESSAGE_AGE: 2}.__getitem__)
    session, runs = SessionState(), ("abc", "ac", "b", "", "", "ab")
    assert [sent_whole(session, run) for run in runs] == ["abc", "c", "", "", "", "ab"]
    monkeypatch.setattr(ScriptRunContext, "on_script_start", streamlit_patches.STREAMLITS_START)
    left = "Streamlit knows what a browser forgot: send_forgotten_messages may go"
    assert sent_whole(SessionState(), "ab") == "", left


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
        assert dict(at.query_params) == left, "Streamlit keeps it by itself: keep_in_address may go"


def messages_of(change: Any, monkeypatch: pytest.MonkeyPatch, *ends: Any) -> list[str]:
    """The addresses that are sent while this changes the parameters, unless `ends` ends the run."""
    sent, ending = list[str](), iter(ends)

    def send(message: ForwardMsg) -> None:
        for end in ending:
            raise end
        sent.append(message.page_info_changed.query_string)

    run = SimpleNamespace(enqueue=send)
    state = SafeSessionState(SessionState(), lambda: None)
    monkeypatch.setattr(streamlit_query_params, "get_script_run_ctx", lambda: run)
    monkeypatch.setattr(streamlit_patches, "get_session_state", lambda: state)
    with state.query_params() as params:
        change(params)
    return sent


def test_what_changes_at_once_is_one_entry_in_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
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

    def change_at_last(params: Any) -> None:
        with pytest.raises(StopException):
            change_at_once(params)

    assert messages_of(change_at_last, monkeypatch, StopException()) == ["model=bert"]
    several = messages_of(change, monkeypatch)
    assert len(several) == 3, "Streamlit sends one by itself: one_entry_in_history may go"


def test_a_run_knows_whether_it_is_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not streamlit_patches.came_back(), "where nobody reads"
    for way in (True, False):
        run = SimpleNamespace(is_history_navigation=way)
        monkeypatch.setattr(streamlit_patches, "get_script_run_ctx", lambda run=run, **_: run)
        assert streamlit_patches.came_back() is way


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
def test_only_a_local_reader_may_upload_over_200_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server takes no more than somebody may; what is free later changes no form."""
    for is_local, free, reader, server in [
        (False, 3_000, 200, 200),
        (True, 400, 200, 200),
        (True, 3_000, 750, 750),
        (True, 1_200, 300, 750),
        (False, 3_000, 200, 750),
    ]:
        monkeypatch.setattr("explorer.app.reader.is_local", lambda answer=is_local: answer)
        monkeypatch.setattr(uploads, "available_memory", lambda free=free: free * 10**6)
        at = page("models/checkpoints")
        monkeypatch.setattr(uploads, "available_memory", lambda: 10**12)
        for _ in range(2):
            assert at.file_uploader(key="uploaded_model_0").proto.max_upload_size_mb == reader
            assert config.get_option(streamlit_patches.UPLOAD_LIMIT) == server
            at.run()


def connected(session: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any]]:
    """A runtime to which only this session is connected, and what its page was run again for."""
    runs: list[Any] = []
    client = SimpleNamespace(client_context=SimpleNamespace(cookies={"explorer_reader": "key"}))
    found = SimpleNamespace(request_rerun=runs.append, _client_state="as it is")
    found.session_state = SessionState()
    sessions = {session: SimpleNamespace(session=found)}
    kept = SimpleNamespace(get_active_session_info=sessions.get, get_session_info=sessions.get)
    running = SimpleNamespace(_session_mgr=kept, is_active_session=sessions.__contains__)
    running.uploaded_file_mgr = MemoryUploadedFileManager("")
    running.get_client = {session: client}.get
    monkeypatch.setattr(streamlit_patches.runtime, "exists", lambda: True)
    monkeypatch.setattr(streamlit_patches.runtime, "get_instance", lambda: running)
    return running, runs


def test_files_of_a_session_are_freed_and_it_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not streamlit_patches.is_connected("a"), "where nothing is served"
    assert not streamlit_patches.cookies_of("a")
    assert streamlit_patches.session_id() == ""
    for nothing in (streamlit_patches.run_again, lambda a: streamlit_patches.forget_file(a, "f")):
        nothing("a")
    running, runs = connected("a", monkeypatch)
    files = running.uploaded_file_mgr
    for name in "fg":
        files.add_file("a", UploadedFileRec(name, name, "", b"12345678"))
    kept = files.file_storage["a"]
    one, two, other = (UploadedFile(kept[name], FileURLs()) for name in "ffg")
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


def test_a_folder_of_too_many_files_is_one_sentence() -> None:
    ours = streamlit_patches.bound_files_of_an_upload
    assert (AppSession, "_handle_file_urls_request", ours) in streamlit_patches.REPLACED
    sent: list[ForwardMsg] = []
    files: Any = {"id": "a", "_uploaded_file_mgr": MemoryUploadedFileManager("")}
    session: Any = SimpleNamespace(**files, _enqueue_forward_msg=sent.append)
    most = streamlit_patches.UPLOADS_AT_ONCE
    for answer in (ours, streamlit_patches.STREAMLITS_ADDRESSES):
        for count in (most, most + 1):
            answer(session, FileURLsRequest(request_id="b", file_names=["c"] * count))
    few, many, few_of_streamlit, many_of_streamlit = (each.file_urls_response for each in sent)
    assert (len(few.file_urls), few.error_msg) == (most, "")
    assert many.response_id == "b"
    assert many.error_msg.startswith("A folder may have at most 100 files, not 101: ")
    assert not many.file_urls
    assert len(few_of_streamlit.file_urls) == most
    assert len(many_of_streamlit.file_urls) == most + 1


@pytest.mark.usefixtures("small_models")
def test_a_page_says_once_why_an_upload_was_not_received(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamlit_patches, "session_id", lambda: "somebody")
    at = page(FIRST)
    assert not at.toast
    megabytes = at.session_state[SESSION_KEY].upload_megabytes
    assert RECEIVED.largest("somebody") == megabytes * limits.MB
    RECEIVED.note("somebody", limits.UPLOADS_RECEIVING.refusal())
    at.run()
    assert [each.value for each in at.toast] == [limits.UPLOADS_RECEIVING.refusal()]
    at.run()
    assert not at.toast
    RECEIVED.free_left()
    assert RECEIVED.largest("somebody") == limits.UPLOAD_BYTES.most
