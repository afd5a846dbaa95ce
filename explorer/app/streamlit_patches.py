"""Every private part of Streamlit that is touched, each with its reason.

`tests/app/test_streamlit_patches.py` and `test_patched_*.py` beside it have a test for each that
fails once Streamlit no longer needs it; then it goes.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import Any

import streamlit as st
from streamlit import config, net_util, runtime
from streamlit.components.v2 import manifest_scanner
from streamlit.components.v2.bidi_component import main as bidi_components
from streamlit.config_option import ConfigOption
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Common_pb2 import FileURLsRequest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner, get_script_run_ctx
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests, ScriptRequestType
from streamlit.runtime.state import SessionState, get_session_state
from streamlit.runtime.state.session_state import Serialized, Value, WStates
from streamlit.runtime.uploaded_file_manager import UploadedFile

# What a component has reported, as a plain dictionary. Streamlit (since its pull request 12685;
# no issue is open) makes a class, so that a page may write to a component's state, each time the
# state is read, five times a run for every component there is. The views of one page cost forty
# classes and a thousand objects of garbage for each change of a head, in which the collector
# then searched for half a second, with every reader waiting. Nothing here writes to a view.


def install_plain_states() -> None:
    """From now on the state of every component is read as a plain dictionary."""
    bidi_components.make_bidi_component_presenter = plain_state


def plain_state(
    aggregator_id: str, component_id: str | None = None, allowed_state_keys: set[str] | None = None
) -> Callable[[Any, Any], Any]:
    """Stands for Streamlit's of the same arguments; the aggregator has what the view fired."""

    def present(state: Any, session: Any) -> Any:
        fired = session._new_widget_state.get(aggregator_id)
        if not fired or not isinstance(state, dict):
            return state
        return {each["event"]: each.get("value") for each in fired if _is_event(each)} | state

    return present


def _is_event(fired: object) -> bool:
    """The browser's words are checked: an event has a name."""
    return isinstance(fired, dict) and isinstance(fired.get("event"), str)


# Of a message that the browser has already, Streamlit sends only a hash. When a fragment is drawn
# again before all of the drawing before was sent, what still waits is taken out of the queue
# (pull request 9381), but for the hashes, which name no fragment (no issue is open). They name
# places that the newer drawing may not have, and then the browser loses the whole page. So a hash
# carries the fragment's name, where only what is made for agents has something.

STREAMLITS_REFERENCE = script_run_context.create_reference_msg
STREAMLITS_CLEAR = ForwardMsgQueue.clear


def take_hashes_back() -> None:
    """From now on the hashes of a fragment leave the queue with its other messages."""

    def make_reference(message: ForwardMsg) -> ForwardMsg:
        reference = STREAMLITS_REFERENCE(message)
        if reference is not message:
            reference.metadata.agent_props = message.delta.fragment_id
        return reference

    def clear_all(
        queue: ForwardMsgQueue,
        retain_lifecycle_msgs: bool = False,
        fragment_ids_this_run: list[str] | None = None,
    ) -> None:
        STREAMLITS_CLEAR(queue, retain_lifecycle_msgs, fragment_ids_this_run)
        again = fragment_ids_this_run or ()
        queue._queue = [
            message
            for message in queue._queue
            if not (message.HasField("ref_hash") and message.metadata.agent_props in again)
        ]

    script_run_context.create_reference_msg = make_reference  # type: ignore[assignment]
    ForwardMsgQueue.clear = clear_all  # type: ignore[assignment, method-assign]


# Where one reader's run waits for another's work, Streamlit cannot end it: it does so only where
# the run draws something or reads the state.


def end_if_unwanted() -> None:
    """End this run if its reader has gone or wants another; elsewhere nothing happens."""
    if get_script_run_ctx(suppress_warning=True) is not None:
        _ = "any" in st.session_state


# A widget that a page does not draw leaves the address, though what it chose stays chosen and other
# pages show it again: a link or a reload would lose it.


def keep_in_address(name: str) -> None:
    """The parameter of a widget that this page does not draw stays as the address has it."""
    with get_session_state().query_params() as params:
        bound = params._bindings_by_param.get(name)
        if bound is not None:
            params.unbind_widget(bound.widget_id)


# A widget that is drawn while a page runs is that page's: on the next it is another, which knows
# nothing of what was chosen, and its parameter is taken out of the address on the way there.


@contextmanager
def as_part_of_the_frame() -> Iterator[None]:
    """What is drawn meanwhile belongs to all pages, as what is drawn before the page does."""
    run = get_script_run_ctx(suppress_warning=True)
    if run is None:
        yield
        return
    with run.run_with_active_hash(run.pages_manager.main_script_hash):
        yield


# Each value that is changed is an entry of its own in the browser's history. Another model changes
# six, and the way back led to the new model with a layer of the old one.


@contextmanager
def one_entry_in_history() -> Iterator[None]:
    """What is changed in the address meanwhile is sent at once, as one entry."""
    with get_session_state().query_params() as params:
        send, changes = params._send_query_param_msg, list[None]()
        vars(params)["_send_query_param_msg"] = lambda: changes.append(None)
    try:
        yield
    finally:
        with get_session_state().query_params() as params:
            vars(params).pop("_send_query_param_msg", None)
        if changes:
            send()


# A widget that is bound to the address follows the browser's Back by itself. Another has to know
# that it was this which changed the address, not a run whose own change the browser has not seen.


def came_back() -> bool:
    """Whether this run was caused by the browser's Back or Forward."""
    run = get_script_run_ctx(suppress_warning=True)
    return run is not None and run.is_history_navigation


# How large an upload may be follows from the machine and the reader, and only the settings of a
# client may be set by what is served (`st.set_option`). A widget's own limit holds in the browser.
UPLOAD_LIMIT = "server.maxUploadSize"


def allow_uploads(megabytes: int) -> int:
    """Have the server take files of this size; how large this reader's may be.

    That is what whoever started the app named, if anything. It takes what it took before, too.
    """
    here: int = config.get_option(UPLOAD_LIMIT)
    by_default = ConfigOption.DEFAULT_DEFINITION
    if config.get_where_defined(UPLOAD_LIMIT) != by_default:
        return here
    config.set_option(UPLOAD_LIMIT, max(here, megabytes), by_default)
    return megabytes


# What is uploaded lies in the memory of the runtime, by session, until the session is thrown away:
# two minutes or more after its reader left, and also when a page has read it (no issue is open).
# Only a run of a page can ask for its own files, and nobody can free one.


Upload = UploadedFile


def session_id() -> str:
    """The name of the session whose run this is; none elsewhere."""
    run = get_script_run_ctx(suppress_warning=True)
    return run.session_id if run else ""


def is_connected(session: str) -> bool:
    """Whether a browser is connected to this session now."""
    return runtime.exists() and runtime.get_instance().is_active_session(session)


def cookies_of(session: str) -> Mapping[str, str]:
    """The cookies that the browser of a session sent when it connected."""
    client = runtime.get_instance().get_client(session) if runtime.exists() else None
    context = client.client_context if client else None
    return context.cookies if context else {}


def forget_file(session: str, file: str) -> None:
    """Free an uploaded file, also where a widget keeps it; the next run finds none."""
    if not runtime.exists():
        return
    running = runtime.get_instance()
    if isinstance(running.uploaded_file_mgr, MemoryUploadedFileManager):
        running.uploaded_file_mgr.remove_file(session, file)
    info = running._session_mgr.get_session_info(session)
    for upload in _files_in(info.session.session_state) if info else ():
        if upload.file_id == file:
            upload.truncate(0)


def _files_in(state: SessionState) -> Iterator[UploadedFile]:
    """The uploaded files among the values of a session's widgets; its run may go on meanwhile."""
    values = list(state._old_state.values())
    values += [each.value for each in list(state._new_widget_state.states.values())]
    for value in values:
        several = value if isinstance(value, list) else [value]
        yield from (each for each in several if isinstance(each, UploadedFile))


# A browser shows of a refused upload only its HTTP status. The page can say why, when it is run.


def run_again(session: str) -> None:
    """Run the page of a session as its reader sees it now; for the server's loop."""
    if not runtime.exists():
        return
    info = runtime.get_instance()._session_mgr.get_active_session_info(session)
    if info is not None:
        info.session.request_rerun(info.session._client_state)


# Every runtime, and so every AppTest, looks for components in all installed packages, which stay
# the same (pull request 12686; no issue is open).


def scan_packages_once() -> None:
    """For the tests: the installed packages are looked through once in a process."""
    manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


# A browser whose session is gone (its server ended, and another one answers now) tells the new one
# only what its reader does next, and that has never drawn the page: it knows no callback of what
# was clicked, and of a fragment it has not heard. The click was lost.

STREAMLITS_REQUEST = AppSession.request_rerun
ACTIONS = {"trigger_value", "string_trigger_value", "json_trigger_value", "chat_input_value"}


def draw_whole_page_first() -> None:
    """From now on the first run of a session is never that of a fragment, which is not there."""

    def request_rerun(session: AppSession, request: ClientState | None) -> None:
        if request and request.fragment_id and not session._client_state.page_script_hash:
            whole = ClientState()
            whole.CopyFrom(request)
            whole.ClearField("fragment_id")
            whole.ClearField("is_auto_rerun")
            request = whole
        STREAMLITS_REQUEST(session, request)

    AppSession.request_rerun = request_rerun  # type: ignore[method-assign, assignment]


def hold_actions() -> list[WidgetState]:
    """What was clicked before this session has drawn anything; this run does not see it."""
    states = get_session_state()._state._new_widget_state.states
    sent = {key: getattr(state, "value", None) for key, state in states.items()}
    actions = {
        key: value
        for key, value in sent.items()
        if isinstance(value, WidgetState) and value.WhichOneof("value") in ACTIONS
    }
    for key in actions:
        del states[key]
    return list(actions.values())


def run_again_with(actions: list[WidgetState]) -> None:
    """At the end of a run: what was clicked is done now, in another one."""
    run = get_script_run_ctx()
    if actions and run is not None and run.script_requests is not None:
        run.script_requests.request_rerun(
            RerunData(
                query_string=run.query_string,
                page_script_hash=run.page_script_hash,
                widget_states=WidgetStates(widgets=actions),
                cached_message_hashes=run.cached_message_hashes,
                context_info=run.context_info,
            )
        )


# A fragment may ask behind the whole page that takes its place: a reader clicks twice, or a view
# asks as soon as it is there, and the browser sends what it had not heard was over. Streamlit then
# draws what is not there any more (its issue 9921 is one case of it), and the browser loses the
# page: it is blank, or that of the link before, or a place in it does not exist.

CLICKS = 50
"""That wait for a run, at most; a reader makes one or two."""
STREAMLITS_RUN = ScriptRunner._run_script
STREAMLITS_QUEUE = ScriptRequests._request_rerun_locked
STREAMLITS_RUNNER = AppSession._create_scriptrunner


def draw_fragments_where_they_are() -> None:
    """From now on a fragment is drawn only where the page that was drawn last has it."""

    def run_script(runner: ScriptRunner, request: RerunData) -> None:
        fragments = runner._fragment_storage
        if request.fragment_id_queue:
            there = [each for each in request.fragment_id_queue if fragments.contains(each)]
            if not there:
                return
            page = runner._pages_manager.current_page_script_hash
            request = replace(request, fragment_id_queue=there, page_script_hash=page)
        STREAMLITS_RUN(runner, request)
        run = get_script_run_ctx()
        if run is not None and not run.fragment_ids_this_run:
            # Streamlit forgets those before only where the page was drawn to its end.
            fragments.clear(new_fragment_ids=run.shared.new_fragment_ids.snapshot())

    def queue(requests: ScriptRequests, request: RerunData) -> bool:
        waits = requests._rerun_data
        if waits.widget_states and request.widget_states:
            # Of what waits only clicks are kept, and all of it is looked through for each message.
            widgets = waits.widget_states.widgets
            clicks = [each for each in widgets if each.WhichOneof("value") in ACTIONS][:CLICKS]
            waits = replace(waits, widget_states=WidgetStates(widgets=clicks))
            requests._rerun_data = waits
        is_whole = requests._state is ScriptRequestType.RERUN and not waits.fragment_id_queue
        if request.fragment_id and is_whole:  # the two become one, which is of the page that waits
            request = replace(
                request,
                page_script_hash=waits.page_script_hash,
                page_name=waits.page_name,
                query_string=waits.query_string,
                is_history_navigation=waits.is_history_navigation,
            )
        return STREAMLITS_QUEUE(requests, request)

    def create_scriptrunner(session: AppSession, request: RerunData) -> None:
        # The run before has ended, but what it drew last is not sent yet, and now never will be.
        if request.fragment_id and session._scriptrunner is not None:
            page = session._pages_manager.current_page_script_hash
            request = replace(request, fragment_id=None, is_auto_rerun=False, page_script_hash=page)
        STREAMLITS_RUNNER(session, request)

    ScriptRunner._run_script = run_script  # type: ignore[method-assign, assignment]
    ScriptRequests._request_rerun_locked = queue  # type: ignore[method-assign, assignment]
    AppSession._create_scriptrunner = create_scriptrunner  # type: ignore[method-assign, assignment]


# The theme is read from the settings, name by name, in each of its six sections, for every run of
# every page. It is the same as long as the server runs, and was a tenth of a short answer.

STREAMLITS_THEME = app_session._populate_theme_msg


def read_theme_once() -> None:
    """From now on the theme is read from the settings once."""

    @cache
    def section_of_theme(section: str) -> CustomThemeConfig:
        theme = CustomThemeConfig()
        STREAMLITS_THEME(theme, section)
        return theme

    def populate(message: CustomThemeConfig, section: str = "theme") -> None:
        if (theme := section_of_theme(section)).ByteSize():
            message.MergeFrom(theme)

    app_session._populate_theme_msg = populate  # type: ignore[assignment]


# Where a page of another site opens a WebSocket, and at the start without an address, Streamlit
# asks an outside host for this machine's own address, and every reader waits. Foreign pages are
# refused before (`explorer/server/host_check.py`), so nothing needs the answer.


def ask_nobody_for_addresses() -> None:
    """From now on this machine is asked for its addresses, and no other."""
    net_util.get_external_ip = lambda: None


# A browser asks for an address for each file of a dropped folder. Streamlit makes them for a
# million, and where the question is not answered the browser says nothing to its reader.

STREAMLITS_ADDRESSES = AppSession._handle_file_urls_request
UPLOADS_AT_ONCE = 100
TOO_MANY_FILES = (
    "A folder may have at most {most} files, not {count:,}: leave out what no model needs."
)


def bound_files_of_an_upload() -> None:
    """From now on a folder of too many files is refused, in a sentence beside each of them."""

    def answer(session: AppSession, request: FileURLsRequest) -> None:
        count = len(request.file_names)
        if count <= UPLOADS_AT_ONCE:
            STREAMLITS_ADDRESSES(session, request)
            return
        message = ForwardMsg()
        message.file_urls_response.response_id = request.request_id
        message.file_urls_response.error_msg = TOO_MANY_FILES.format(
            most=UPLOADS_AT_ONCE, count=count
        )
        session._enqueue_forward_msg(message)

    AppSession._handle_file_urls_request = answer  # type: ignore[method-assign, assignment]


# A message may clear the caches of all readers, or have git describe the folder of the server; one
# that cannot be read is logged with its stack. Of widgets Streamlit keeps whatever it is told, and
# walks through all of them at every run.

FOR_READERS = {
    *("rerun_script", "app_heartbeat", "stop_script", "backend_operation_request"),
    "file_urls_request",
}
WIDGETS, KNOWN_MESSAGES = 500, 20_000
"""Of one message; the largest page has about 100, and a browser keeps some thousands."""


def is_for_readers(data: bytes) -> bool:
    """Whether a browser's message is one that a reader of the app sends; ValueError if it is none.

    Streamlit's page itself sends some of the others, and needs no answer.
    """
    message = BackMsg()
    try:
        message.ParseFromString(data)
    except Exception as error:
        raise ValueError("This is no message of Streamlit's page.") from error
    kind = message.WhichOneof("type")
    if kind == "rerun_script":
        run = message.rerun_script
        return (
            len(run.widget_states.widgets) <= WIDGETS
            and len(run.cached_message_hashes) <= KNOWN_MESSAGES
        )
    return kind in FOR_READERS


# A widget takes whatever kind of value a message has for it: a number where a page asks for the
# length of a text, or what its own reader of values fails on. Both ended in an error page and a
# traceback in the log, for which no page of the app is at fault.

STREAMLITS_VALUE = WStates.__getitem__
NUMBER_FIELDS = {"int_value", "double_value"}
"""A field for whole numbers sends the one and is registered as the other."""


def take_only_values_that_can_be() -> None:
    """From now on a value that no browser sends for a widget counts as none."""
    WStates.__getitem__ = value_of  # type: ignore[method-assign]


def value_of(states: WStates, widget: str) -> Any:
    """Stands for Streamlit's, which everything that reads a widget comes to."""
    sent, about = states.states.get(widget), states.widget_metadata.get(widget)
    if not isinstance(sent, Serialized) or about is None:
        return STREAMLITS_VALUE(states, widget)
    kinds = {sent.value.WhichOneof("value"), about.value_type}
    if len(kinds) == 1 or None in kinds or kinds == NUMBER_FIELDS:
        with suppress(Exception):  # whatever its reader of values fails with
            return STREAMLITS_VALUE(states, widget)
    states.states[widget] = Value(about.deserializer(None))
    return STREAMLITS_VALUE(states, widget)


# A session that was left is kept for two minutes, for its reader to come back. Then it is
# forgotten when the next one leaves, and until then its memory and its three open files are kept.


def forget_who_left() -> int:
    """End the sessions whose readers left long ago; how many those were."""
    manager: Any = runtime.get_instance()._session_mgr
    gone = manager._session_storage._cache.expire()
    for _, left in gone:
        left.session.shutdown()
    return len(gone)
