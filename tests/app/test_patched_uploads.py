"""Uploads: the patches of Streamlit about them do what they say, and a page says what it missed."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st
from streamlit import config
from streamlit.config_option import ConfigOption
from streamlit.errors import StreamlitAPIException
from streamlit.proto.Common_pb2 import FileURLs, FileURLsRequest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.state import SessionState
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from explorer.app import streamlit_patches
from explorer.app.received_uploads import RECEIVED
from explorer.app.session import SESSION_KEY
from explorer.catalog import uploads
from explorer.components import matrix  # noqa: F401  (a view installs what it needs)
from explorer.system import limits
from tests.apps import FIRST, page


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
