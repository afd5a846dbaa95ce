"""Every private part of Streamlit that the app uses or changes, each with its reason.

`tests/app/test_streamlit_patches.py` and `test_patched_*.py` have a test for each that fails once
Streamlit no longer needs the patch; then it is deleted.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit import config, net_util, runtime
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
from streamlit.runtime.scriptrunner_utils.exceptions import ScriptControlException
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests, ScriptRequestType
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.runtime.state import SessionState, get_session_state
from streamlit.runtime.state.query_params import (
    QueryParams,
    _coerce_value_for_query_url,
    _parse_query_string,
    parse_url_param,
)
from streamlit.runtime.state.session_state import Serialized, Value, WStates
from streamlit.runtime.uploaded_file_manager import UploadedFile

REPLACED: list[tuple[Any, str, Callable[..., Any]]] = []
"""A class or module of Streamlit, the name of a function in it, and ours."""


def replaces(owner: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """In a server the function below stands in the place of Streamlit's."""

    def note(ours: Callable[..., Any]) -> Callable[..., Any]:
        REPLACED.append((owner, name, ours))
        return ours

    return note


def install_in_server() -> None:
    """Apply the patches that a server needs."""
    for owner, name, ours in REPLACED:
        setattr(owner, name, ours)


# The state of a component as a plain dictionary. Streamlit (since its pull request 12685; no issue
# is open) makes a class each time the state is read, five times a run for every component, so that
# a page may write to it. The views of one page cost forty classes and a thousand objects of garbage
# for each change of a head, and the collector then stopped every reader for half a second. No page
# of the app writes to a view.


def install_plain_states() -> None:
    """From now on the state of every component is read as a plain dictionary."""
    bidi_components.make_bidi_component_presenter = plain_state


def plain_state(
    aggregator_id: str, component_id: str | None = None, allowed_state_keys: set[str] | None = None
) -> Callable[[Any, Any], Any]:
    """Replaces Streamlit's function of the same arguments; the aggregator has the view's events."""

    def present(state: Any, session: Any) -> Any:
        events = session._new_widget_state.get(aggregator_id)
        if not events or not isinstance(state, dict):
            return state
        sent = [event for event in events if isinstance(event, dict)]
        named = [event for event in sent if isinstance(event.get("event"), str)]
        values = {event["event"]: event.get("value") for event in named}
        return values | state

    return present


# When a fragment is drawn again before its last drawing was sent, Streamlit drops the waiting
# messages that draw it (pull request 9381; no issue is open), but neither those that have only a
# hash, which may name places that the new drawing lacks, nor the end of the run of the whole page.
# At that end the browser removes what the page has not drawn: the fragment, and with it a click.

STREAMLITS_CLEAR = ForwardMsgQueue.clear


@replaces(ForwardMsgQueue, "clear")
def keep_waiting_messages(
    queue: ForwardMsgQueue,
    retain_lifecycle_msgs: bool = False,
    fragment_ids_this_run: list[str] | None = None,
) -> None:
    """A fragment that is drawn again drops no message that waits to be sent."""
    if fragment_ids_this_run is None:
        STREAMLITS_CLEAR(queue, retain_lifecycle_msgs)
    queue._delta_index_map = {}  # nothing that is drawn now takes the place of what waits


# A browser names the large messages that it knows, and Streamlit sends of these only a hash. It may
# forget one before its hash arrives, as earlier runs end that no longer had it (after as many as
# `MESSAGE_AGE` says). Then it gives up the connection and the page is lost (issues 15816 and 16570,
# closed as not reproduced).

MESSAGE_AGE = "global.maxCachedMessageAge"
STREAMLITS_START = ScriptRunContext.on_script_start


@dataclass
class SentMessages:
    """The large messages of a session that its browser cannot have forgotten."""

    run: int = 0
    last: dict[str, int] = field(default_factory=dict)
    """The last run that had each."""


class KnownMessages(frozenset[str]):
    """The messages that a browser names; those that it may forget are not in it."""

    sent: SentMessages

    def __contains__(self, message: object) -> bool:
        is_recent = message in self.sent.last
        self.sent.last[str(message)] = self.sent.run
        return is_recent and super().__contains__(message)


@replaces(ScriptRunContext, "on_script_start")
def send_forgotten_messages(run: ScriptRunContext) -> None:
    """A message that the browser may forget is sent whole."""
    STREAMLITS_START(run)
    with run.session_state.query_params() as params:  # the state itself takes no attribute
        sent = vars(params).setdefault("sent_messages", SentMessages())
    sent.run += 1
    oldest = sent.run - config.get_option(MESSAGE_AGE)
    sent.last = {message: last for message, last in sent.last.items() if last >= oldest}
    known = KnownMessages(run.cached_message_hashes)
    known.sent = sent
    run.cached_message_hashes = known


# Streamlit can end a run only when it draws something or reads the state, not while it waits for
# another reader's work.


def end_if_unwanted() -> None:
    """End this run if its reader has left or started another; do nothing outside a run."""
    if get_script_run_ctx(suppress_warning=True) is not None:
        _ = "any" in st.session_state


# Each read of the state looks for another request, takes a lock and searches four dictionaries. A
# page asks some hundred times whose run it is, which took a fifth of a run.


def kept_in_run() -> dict[str, Any]:
    """What is kept while a thread runs a session's script; outside a run it is gone at once."""
    run = get_script_run_ctx(suppress_warning=True)
    return {} if run is None else vars(run)


# A widget that a page does not draw leaves the address, though its value stays chosen for other
# pages: a link or a reload would lose it.


def keep_in_address(name: str) -> None:
    """Keep the parameter of a widget that this page does not draw as the address has it."""
    with get_session_state().query_params() as params:
        bound = params._bindings_by_param.get(name)
        if bound is not None:
            params.unbind_widget(bound.widget_id)


# A widget that is drawn while a page runs belongs to that page. On the next page it is a new widget
# without a value, and its parameter is removed from the address on the way there.


@contextmanager
def as_part_of_the_frame() -> Iterator[None]:
    """Widgets drawn inside belong to all pages, like those of the bar."""
    run = get_script_run_ctx(suppress_warning=True)
    if run is None:
        yield
        return
    with run.run_with_active_hash(run.pages_manager.main_script_hash):
        yield


# Each changed value is an entry of its own in the browser's history. Choosing a model changes six,
# and Back led to the new model with a layer of the old one. Where a run is to end as it sends
# a change, the next run sends none.


@contextmanager
def one_entry_in_history() -> Iterator[None]:
    """Send all changes of the address made inside as one entry."""
    with get_session_state().query_params() as params:
        send, changes = params._send_query_param_msg, list[None]()
        vars(params)["_send_query_param_msg"] = lambda: changes.append(None)
    try:
        yield
    finally:
        with get_session_state().query_params() as params:
            vars(params).pop("_send_query_param_msg", None)
        if changes:
            try:
                send()
            except ScriptControlException:  # another run waits, which has nothing to change
                send()
                raise


# A widget that is bound to the address follows the browser's Back by itself. Others must know that
# Back changed the address, and not an earlier run whose change the browser has not seen yet.


def came_back() -> bool:
    """Whether this run was caused by the browser's Back or Forward."""
    run = get_script_run_ctx(suppress_warning=True)
    return run is not None and run.is_history_navigation


# How large an upload may be depends on the machine and the reader, but an app may set only client
# options (`st.set_option`). A widget's own limit holds only in the browser.
UPLOAD_LIMIT = "server.maxUploadSize"


def allow_uploads(megabytes: int) -> int:
    """Let the server receive files of this size; return how large this reader's may be.

    A limit that the operator has set stays. A smaller limit for one reader does not lower others'.
    """
    here: int = config.get_option(UPLOAD_LIMIT)
    by_default = ConfigOption.DEFAULT_DEFINITION
    if config.get_where_defined(UPLOAD_LIMIT) != by_default:
        return here
    config.set_option(UPLOAD_LIMIT, max(here, megabytes), by_default)
    return megabytes


# Streamlit keeps uploads in memory until their session is dropped, two minutes or more after its
# reader left, even if a page has read them (no issue is open). Only a run of a page can ask for its
# own files, and nothing can free one.


Upload = UploadedFile


def session_id() -> str:
    """The ID of the session whose run this is; empty outside a run."""
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
    """Free an uploaded file, also in the widget that has it; the next run has no file."""
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
    values += [widget.value for widget in list(state._new_widget_state.states.values())]
    for value in values:
        items = value if isinstance(value, list) else [value]
        yield from (item for item in items if isinstance(item, UploadedFile))


# A browser shows only the HTTP status of a refused upload. A run of the page can say why.


def run_again(session: str) -> None:
    """Run the page of a session as its reader sees it now; for the server's loop."""
    if not runtime.exists():
        return
    info = runtime.get_instance()._session_mgr.get_active_session_info(session)
    if info is not None:
        info.session.request_rerun(info.session._client_state)


# When a server ends and another one answers, the browser sends the new session only the reader's
# next click. That session has not drawn the page yet, so it knows neither the callback nor the
# fragment, and the click was lost. A click on a page whose reader has just followed a link names
# the page that is left, and Streamlit went back there. A first run does not know its page yet.

STREAMLITS_REQUEST = AppSession.request_rerun
ACTIONS = {"trigger_value", "string_trigger_value", "json_trigger_value", "chat_input_value"}


@replaces(AppSession, "request_rerun")
def draw_page_of_session(session: AppSession, request: ClientState | None) -> None:
    """The first run of a session draws a whole page, and a click never changes it."""
    page, main = session._client_state.page_script_hash, session._pages_manager.main_script_hash
    if request is not None:
        run = ClientState()
        run.CopyFrom(request)
        if not page:
            run.ClearField("fragment_id")
            run.ClearField("is_auto_rerun")
        elif page != main and run.page_script_hash and is_click(run):
            run.page_script_hash = page
        settle_address(session, run)
        request = run
    STREAMLITS_REQUEST(session, request)


# A request has the browser's address and the values of its widgets. Where an address of the server
# arrives between a click and its request, it replaces the browser's, which then lacks the choice.
# Streamlit restores a value that the address lacks (no issue is open): the widget goes back to it,
# and the reader's next click there is lost. Where it arrives after the request, the choice stays
# missing in the browser's address.

STREAMLITS_ADDRESS = QueryParams._send_query_param_msg
Parameters = dict[str, list[str]]


@dataclass
class SentAddress:
    """The address that was sent last to a browser, until a request has what it changed."""

    page: str
    parameters: Parameters
    changed: set[str]


@replaces(QueryParams, "_send_query_param_msg")
def note_sent_address(params: QueryParams) -> None:
    """A session knows which address it sent last."""
    run = get_script_run_ctx(suppress_warning=True)
    before = _parse_query_string(run.query_string) if run else {}
    STREAMLITS_ADDRESS(params)
    if run:
        now, sent = _parse_query_string(run.query_string), vars(params).get("sent")
        earlier = sent.changed if sent and sent.page == run.page_script_hash else set()
        changed = _changed(before, now) | earlier
        vars(params)["sent"] = SentAddress(run.page_script_hash, now, changed)


def settle_address(session: AppSession, request: ClientState) -> None:
    """Write the values of the widgets into the request's address, and into the browser's."""
    state, params = session.session_state, session.session_state.query_params
    page, sent = session._client_state.page_script_hash, vars(params).pop("sent", None)
    if request.page_script_hash != page or request.is_history_navigation:
        return
    if sent and sent.page != page:
        sent = None
    address = _parse_query_string(request.query_string)
    is_crossed = sent is not None and bool(_changed(sent.parameters, address) & sent.changed)
    before = sent.parameters if sent and is_crossed else address
    chosen = before | {
        name: values
        for widget in request.widget_states.widgets
        for name, values in _parameter_of(state, widget, before)
    }
    chosen = {name: values for name, values in chosen.items() if values}
    if chosen == address and not is_crossed:
        return
    request.query_string = urlencode(chosen, doseq=True)
    if sent and (is_crossed or address == sent.parameters):
        changed = sent.changed | _changed(before, chosen)
        vars(params)["sent"] = SentAddress(sent.page, chosen, changed)
        message = ForwardMsg()
        message.page_info_changed.query_string = request.query_string
        session._enqueue_forward_msg(message)


def _changed(before: Parameters, after: Parameters) -> set[str]:
    return {name for name in before | after if before.get(name) != after.get(name)}


def _parameter_of(
    state: SessionState, widget: WidgetState, address: Parameters
) -> Iterator[tuple[str, list[str]]]:
    """The parameter of this widget, if the address has another value; none at its default."""
    bound = state.query_params.get_binding_for_widget(widget.id)
    about = state._new_widget_state.widget_metadata.get(widget.id)
    if bound is None or about is None:
        return
    name, states = bound.param_key, WStates({widget.id: Serialized(widget)}, {widget.id: about})
    value, default = states[widget.id], about.deserializer(None)
    kind, named = about.value_type, address.get(name)
    with suppress(Exception):  # a typed value may be anything
        if value == (about.deserializer(parse_url_param(named, kind)) if named else default):
            return
    values = [] if value == default else _coerce_value_for_query_url(about.serializer(value), kind)
    yield name, [values] if isinstance(values, str) else values


def is_click(request: ClientState | RerunData) -> bool:
    """Whether a browser's request has a click or an event of a view."""
    states = request.widget_states
    return states is not None and any(w.WhichOneof("value") in ACTIONS for w in states.widgets)


def hold_actions() -> list[WidgetState]:
    """Clicks that came before this session has drawn anything; this run does not see them."""
    states, actions = get_session_state()._state._new_widget_state.states, list[WidgetState]()
    for key, state in list(states.items()):
        value = getattr(state, "value", None)
        if isinstance(value, WidgetState) and value.WhichOneof("value") in ACTIONS:
            actions.append(value)
            del states[key]
    return actions


def run_again_with(actions: list[WidgetState]) -> None:
    """At the end of a run, run again with these clicks."""
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


# A browser may ask for a fragment after the whole page that replaces it: a reader clicks twice, or
# a view sends an event as soon as it is mounted. Streamlit then draws a fragment that no longer
# exists (its issue 9921 is one case), and the browser loses the page: it is blank, or shows the
# page before, or a place in it does not exist.

CLICKS = 50
"""The most clicks that wait for a run; a reader makes one or two."""
STREAMLITS_RUN = ScriptRunner._run_script
STREAMLITS_QUEUE = ScriptRequests._request_rerun_locked
STREAMLITS_RUNNER = AppSession._create_scriptrunner


@replaces(ScriptRunner, "_run_script")
def draw_fragments_where_they_are(runner: ScriptRunner, request: RerunData) -> None:
    """A fragment is drawn only where the page that was drawn last has it."""
    fragments = runner._fragment_storage
    if request.fragment_id_queue:
        queue = [name for name in request.fragment_id_queue if fragments.contains(name)]
        if not queue:
            return
        page = runner._pages_manager.current_page_script_hash
        request = replace(request, fragment_id_queue=queue, page_script_hash=page)
    STREAMLITS_RUN(runner, request)
    run = get_script_run_ctx()
    if run is not None and not run.fragment_ids_this_run:
        # Streamlit forgets those before only where the page was drawn to its end.
        fragments.clear(new_fragment_ids=run.shared.new_fragment_ids.snapshot())


@replaces(ScriptRequests, "_request_rerun_locked")
def keep_page_that_waits(requests: ScriptRequests, request: RerunData) -> bool:
    """A click that comes before the drawing of a whole page goes to that page."""
    waits = requests._rerun_data
    if waits.widget_states and request.widget_states:
        # Of what waits only clicks are kept, and all of it is looked through for each message.
        widgets = waits.widget_states.widgets
        clicks = [w for w in widgets if w.WhichOneof("value") in ACTIONS][:CLICKS]
        waits = replace(waits, widget_states=WidgetStates(widgets=clicks))
        requests._rerun_data = waits
    is_whole = requests._state is ScriptRequestType.RERUN and not waits.fragment_id_queue
    is_part = bool(request.fragment_id) or is_click(request)
    is_elsewhere = waits.page_script_hash not in ("", request.page_script_hash)
    if is_whole and is_part and (is_elsewhere or waits.is_history_navigation):
        # The two become one, which is of the page that waits.
        request = replace(
            request,
            page_script_hash=waits.page_script_hash,
            page_name=waits.page_name,
            query_string=waits.query_string,
            is_history_navigation=waits.is_history_navigation,
        )
    return STREAMLITS_QUEUE(requests, request)


@replaces(AppSession, "_create_scriptrunner")
def draw_whole_page_first(session: AppSession, request: RerunData) -> None:
    """A new script runner draws the whole page."""
    # The run before has ended, but what it drew last is not sent yet, and now never will be.
    if request.fragment_id and session._scriptrunner is not None:
        page = session._pages_manager.current_page_script_hash
        request = replace(request, fragment_id=None, is_auto_rerun=False, page_script_hash=page)
    STREAMLITS_RUNNER(session, request)


# Every run of a page reads the theme from the settings, name by name, in each of six sections. It
# never changes while the server runs, and took a tenth of a short answer.

STREAMLITS_THEME = app_session._populate_theme_msg


@cache
def section_of_theme(section: str) -> CustomThemeConfig:
    """What the settings say now."""
    theme = CustomThemeConfig()
    STREAMLITS_THEME(theme, section)
    return theme


@replaces(app_session, "_populate_theme_msg")
def read_theme_once(message: CustomThemeConfig, section: str = "theme") -> None:
    """The theme is read from the settings once."""
    if (theme := section_of_theme(section)).ByteSize():
        message.MergeFrom(theme)


# Where a page of another site opens a WebSocket, and at the start without an address, Streamlit
# asks an outside host for this machine's own address, and every reader waits. Foreign pages are
# refused before (`explorer/server/host_check.py`), so nothing needs the answer.


@replaces(net_util, "get_external_ip")
def ask_nobody_for_addresses() -> None:
    """This machine is asked for its addresses, and no other."""


# A browser asks for an upload address for each file of a dropped folder. Streamlit makes a million
# of them, and if the request is not answered, the browser shows the reader nothing.

STREAMLITS_ADDRESSES = AppSession._handle_file_urls_request
UPLOADS_AT_ONCE = 100
TOO_MANY_FILES = (
    "A folder may have at most {most} files, not {count:,}: leave out what no model needs."
)


@replaces(AppSession, "_handle_file_urls_request")
def bound_files_of_an_upload(session: AppSession, request: FileURLsRequest) -> None:
    """A folder of too many files is refused, in a sentence beside each of them."""
    count = len(request.file_names)
    if count <= UPLOADS_AT_ONCE:
        STREAMLITS_ADDRESSES(session, request)
        return
    message = ForwardMsg()
    message.file_urls_response.response_id = request.request_id
    message.file_urls_response.error_msg = TOO_MANY_FILES.format(most=UPLOADS_AT_ONCE, count=count)
    session._enqueue_forward_msg(message)


# A message may clear the caches of all readers, or have git describe the server's folder; one that
# cannot be parsed is logged with its stack. Streamlit keeps every widget that a browser names, and
# walks through all of them at every run.

FOR_READERS = {
    *("rerun_script", "app_heartbeat", "stop_script", "backend_operation_request"),
    "file_urls_request",
}
WIDGETS, KNOWN_MESSAGES = 500, 20_000
"""The most in one message. The largest page has about 100 widgets; a browser keeps some thousand
messages."""


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


# A widget accepts any kind of value from a message, such as a number where the page takes the
# length of a text, or one on which its own deserializer fails. Both ended in an error page and a
# traceback in the log, though no page of the app was at fault.

STREAMLITS_VALUE = WStates.__getitem__
NUMBER_FIELDS = {"int_value", "double_value"}
"""A field for whole numbers sends the one and is registered as the other."""


@replaces(WStates, "__getitem__")
def value_of(states: WStates, widget: str) -> Any:
    """Every read of a widget: a value that no browser sends for it counts as none."""
    state, about = states.states.get(widget), states.widget_metadata.get(widget)
    if not isinstance(state, Serialized) or about is None:
        return STREAMLITS_VALUE(states, widget)
    kinds = {state.value.WhichOneof("value"), about.value_type}
    if len(kinds) == 1 or None in kinds or kinds == NUMBER_FIELDS:
        with suppress(Exception):  # its deserializer may raise anything
            return STREAMLITS_VALUE(states, widget)
    states.states[widget] = Value(about.deserializer(None))
    return STREAMLITS_VALUE(states, widget)


# Streamlit keeps a session for two minutes after its reader left. It then drops it only when the
# next reader leaves; until then the session holds its memory and three open files.


def end_left_sessions() -> int:
    """End the sessions whose readers left long ago; return how many."""
    manager: Any = runtime.get_instance()._session_mgr
    gone = manager._session_storage._cache.expire()
    for _, left in gone:
        left.session.shutdown()
    return len(gone)
