"""Who may connect, and what a WebSocket may send: frames, and messages of a reader's page."""

import asyncio
import logging
import resource
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from socket import IPPROTO_TCP, TCP_NODELAY
from socket import socket as tcp
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from streamlit import net_util, runtime
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from uvicorn import Config
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from explorer.app import streamlit_patches
from explorer.app.reader import COOKIE
from explorer.app.streamlit_patches import KNOWN_MESSAGES, WIDGETS, is_for_readers
from explorer.server import connection_limits, message_limits
from explorer.server.connection_limits import HTTP, MOST_FILES, ConnectionLimits, client_network
from explorer.server.message_limits import BURST_SECONDS, LARGE_MESSAGE, MessageLimits, RateLimit
from explorer.system.limits import SESSIONS, SESSIONS_OF_ADDRESS
from tests.calls import run_in_thread
from tests.server.asking import Answer, Inside, ask, asked, in_a_loop, scope_of


def socket(client: str = "127.0.0.1", key: str = "") -> dict[str, Any]:
    cookie = {"cookie": f"{COOKIE}={key}"} if key else {}
    return scope_of("/_stcore/stream", cookie, kind="websocket", client=client)


def full_of_those_who_stay() -> tuple[Inside, ConnectionLimits]:
    """Who comes in stays until `let_go` is set."""
    inside = Inside()
    inside.let_go.clear()
    return inside, ConnectionLimits(inside)


async def connected(server: ConnectionLimits, *scopes: dict[str, Any]) -> list[asyncio.Task[Any]]:
    """Connections that stay open until what is inside lets them go."""
    tasks = [asyncio.create_task(asked(server, each)) for each in scopes]
    await asyncio.sleep(0)
    return tasks


@in_a_loop
async def test_who_comes_when_it_is_full_reads_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_SESSIONS", "2")
    inside, server = full_of_those_who_stay()
    there = await connected(server, socket(key="a" * 32), socket())
    open_page = scope_of("/_stcore/health", {"accept": "*/*"})  # shows what else than 200 it gets
    assert (await asked(ConnectionLimits(Inside()), open_page)).status == 200
    for scope in (socket(), scope_of("/attention"), open_page):
        answer = await asked(server, scope)
        assert (answer.status, answer.sentence) == (503, SESSIONS.refusal())
        assert answer.headers["retry-after"] == "60"
    assert (await asked(server, scope_of("/static/a.js", {"accept": "*/*"}))).status == 200
    inside.let_go.set()
    await asyncio.gather(*there)
    assert (await asked(server, socket())).status == 101, "who left made room"
    assert (server.connected, server.by_network, server.by_reader) == (0, {}, {})


@in_a_loop
async def test_only_a_reload_is_let_in_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another tab would be a page whose connection is refused."""
    monkeypatch.setenv("EXPLORER_LIMIT_SESSIONS", "1")
    inside, server = full_of_those_who_stay()
    there = await connected(server, socket(key="a" * 32))
    reloads = [("a", "max-age=0", 200), ("a", "no-cache", 200)]
    for key, cache, status in [*reloads, ("a", "", 503), ("b", "max-age=0", 503)]:
        headers = {"cookie": f"{COOKIE}={key * 32}", "cache-control": cache}
        assert (await asked(server, scope_of("/attention", headers))).status == status, headers
    inside.let_go.set()
    await asyncio.gather(*there)


@in_a_loop
async def test_one_network_has_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_SESSIONS_OF_ADDRESS", "1")
    inside, server = full_of_those_who_stay()
    there = await connected(server, socket("192.0.2.1"), socket("2001:db8::1"))
    for client in ("192.0.2.1", "::ffff:192.0.2.1", "2001:db8::ffff"):
        answer = await asked(server, socket(client))
        assert (answer.status, answer.sentence) == (503, SESSIONS_OF_ADDRESS.refusal())
    inside.let_go.set()
    for client in ("192.0.2.2", "2001:db8:0:1::1"):
        assert (await asked(server, socket(client))).status == 101, client
    await asyncio.gather(*there)


def test_whoever_leaves_is_counted_out() -> None:
    """Also where a connection breaks, or comes from no address."""

    async def broken(scope: object, receive: object, send: object) -> None:
        raise OSError

    for inside, client, ends in ((broken, ("192.0.2.1", 1), OSError), (Inside(), None, ())):
        server = ConnectionLimits(inside)
        for _ in range(3):
            with pytest.raises(ends) if ends else nullcontext():
                ask(server, {**socket(), "client": client})
        assert (server.connected, server.by_network, server.by_reader) == (0, {}, {})
    assert client_network({"client": None}) == ""
    assert client_network({"client": ("a socket", 0)}) == "a socket"


def test_it_is_full_when_files_are_scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ConnectionLimits(Inside())
    assert ask(server, socket()).status == 101
    monkeypatch.setattr(connection_limits, "files_are_scarce", lambda: True)
    assert ask(server, socket()).sentence == SESSIONS.refusal()


def test_the_soft_limit_of_open_files_becomes_the_hard_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"limits": (1_024, 4_096)}
    monkeypatch.setattr(resource, "getrlimit", lambda which: now["limits"])
    monkeypatch.setattr(resource, "setrlimit", lambda which, pair: now.update(limits=pair))
    for before, after in [
        ((1_024, 4_096), (4_096, 4_096)),
        ((1_024, resource.RLIM_INFINITY), (MOST_FILES, resource.RLIM_INFINITY)),
        ((1_024, 10**9), (MOST_FILES, 10**9)),
        ((10**6, 10**6), (10**6, 10**6)),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY),) * 2,
    ]:
        now["limits"] = before
        connection_limits.raise_file_limit()
        assert now["limits"] == after, before


def test_small_messages_wait_for_no_acknowledgement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "_connection_made", Mock())
    with tcp() as line:
        assert not line.getsockopt(IPPROTO_TCP, TCP_NODELAY)
        about = Mock(**{"get_extra_info.return_value": line})
        connection_limits.connection_made(Mock(connections=()), about)
        assert line.getsockopt(IPPROTO_TCP, TCP_NODELAY)


def test_half_of_the_files_are_for_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(Inside(), log_config=None)
    config.load()
    monkeypatch.setattr(HTTP, "connection_made", HTTP.connection_made)
    connection_limits.limit_connections()
    for soft, closed in [(4, [False, False, True]), (resource.RLIM_INFINITY, [False] * 3)]:
        monkeypatch.setattr(resource, "getrlimit", lambda which, soft=soft: (soft, soft))
        state, lines = ServerState(), [Mock(**{"get_extra_info.return_value": None}) for _ in "abc"]
        for line in lines:
            kind: Any = config.http_protocol_class
            kind(config, state, {}, Mock()).connection_made(line)
        assert [line.close.called for line in lines] == closed
        assert [SESSIONS.refusal() in str(line.write.call_args) for line in lines] == closed


def test_a_request_of_many_lines_is_refused_unparsed(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(Inside(), log_config=None, http="h11")
    config.load()
    monkeypatch.setattr(HTTP, "connection_made", HTTP.connection_made)
    connection_limits.limit_connections()
    for lines, refused in ((20, False), (1_000, True)):
        line = Mock(**{"get_extra_info.return_value": None})
        kind: Any = config.http_protocol_class
        connection = kind(config, ServerState(), {}, Mock())
        connection.connection_made(line)
        connection.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a:b\r\n" * lines + b"\r\n")
        assert (b"400" in b"".join(each.args[0] for each in line.write.call_args_list)) == refused


def test_files_are_scarce_when_nearly_all_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, used, scarce in [(1_024, 768, False), (1_024, 769, True), (100, 76, True)]:
        monkeypatch.setattr(resource, "getrlimit", lambda which, soft=soft: (soft, soft))
        monkeypatch.setattr(connection_limits.os, "listdir", lambda path, used=used: ["0"] * used)
        assert connection_limits.files_are_scarce() == scarce, (soft, used)


def test_sessions_whose_readers_left_give_theirs_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit ends them when the next reader leaves, which may be never."""
    kept, long_gone = MemorySessionStorage(), MemorySessionStorage(ttl_seconds=0)
    left: Any = SimpleNamespace(session=Mock(id="a"))
    for storage, ended in [(kept, 0), (long_gone, 1)]:
        storage.save(left)
        manager = SimpleNamespace(_session_storage=storage)
        monkeypatch.setattr(runtime, "get_instance", lambda m=manager: Mock(_session_mgr=m))
        assert left.session.shutdown.call_count == 0
        assert streamlit_patches.end_left_sessions() == ended
        assert left.session.shutdown.call_count == ended
        assert streamlit_patches.end_left_sessions() == 0


def test_no_host_is_asked_for_addresses() -> None:
    ours = streamlit_patches.ask_nobody_for_addresses
    assert (net_util, "get_external_ip", ours) in streamlit_patches.REPLACED
    assert ours() is None


def say(*said: Any) -> tuple[Inside, Answer]:
    inside, socket = Inside(), scope_of("/_stcore/stream", kind="websocket")
    return inside, ask(MessageLimits(inside, is_for_readers), socket, said)


def message(**fields: Any) -> bytes:
    return BackMsg(**fields).SerializeToString()


RERUN = message(rerun_script={"query_string": "head=1"})


def test_what_a_reader_sends_passes_and_what_no_reader_needs_is_dropped() -> None:
    """One of them would clear the caches of everybody, another have git look through the folder."""
    uploads = message(file_urls_request={"file_names": ["a"]})
    dropped = [message(clear_cache=True), message(load_git_info=True), b""]
    for crowded in (
        {"widget_states": {"widgets": [{"id": str(each)} for each in range(WIDGETS + 1)]}},
        {"cached_message_hashes": [""] * (KNOWN_MESSAGES + 1)},
    ):
        dropped.append(message(rerun_script=crowded))
    dropped += [message(set_run_on_save=True), message(debug_shutdown_runtime=True)]
    passing = [RERUN, uploads, message(app_heartbeat=True), message(stop_script=True)]
    assert ask(MessageLimits(Inside(), is_for_readers), scope_of()).status == 200, "no WebSocket"
    inside, answer = say(*dropped, *passing, *dropped)
    assert inside.heard == passing
    assert answer.sent == []


@pytest.mark.parametrize("junk", [b"\xff\xff", RERUN[:-1], {"text": "hello"}])
def test_junk_closes_it_without_a_stack(junk: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "explorer")
    frame = {"type": "websocket.receive", **junk} if isinstance(junk, dict) else junk
    inside, answer = say(RERUN, frame, RERUN)
    assert inside.heard == [RERUN]
    (closed,) = answer.sent
    assert (closed["type"], closed["code"]) == ("websocket.close", message_limits.NOT_A_MESSAGE)
    assert all(record.exc_info is None for record in caplog.records)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each message had to wait, in a time that does not pass."""
    seconds: list[float] = []
    sleep = asyncio.sleep

    async def note(time: float) -> None:
        seconds.append(time)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    return seconds


def test_who_says_too_much_waits(waited: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_MESSAGE_RATE", "10")
    inside, _ = say(*[RERUN] * 200)
    assert len(inside.heard) == 200
    assert waited[0] == 0
    assert waited[-1] > 10, "200 of them take 15 seconds and some"
    waited.clear()
    say(*[message(rerun_script={"page_name": "a" * LARGE_MESSAGE * 30})] * 3)
    assert waited[0] == 0
    assert waited[-1] > 3, "a long one counts as many: three seconds each, and five are free"


SHORT, LONG = b"a" * LARGE_MESSAGE, b"a" * 2 * LARGE_MESSAGE


def test_a_network_shares_its_rate(waited: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message costs the loop some milliseconds at worst, whoever it is for."""

    async def talk(*clients: str) -> None:
        messages = MessageLimits(Inside(), is_for_readers)
        scopes = (scope_of("/", kind="websocket", client=client) for client in clients)
        await asyncio.gather(*(asked(messages, scope, [RERUN] * BURST_SECONDS) for scope in scopes))

    monkeypatch.setenv("EXPLORER_LIMIT_MESSAGE_RATE", "1")
    run_in_thread(talk(*["192.0.2.1"] * message_limits.CONNECTIONS_AT_FULL_RATE, "192.0.2.2"))
    assert max(waited) == 0
    run_in_thread(talk(*["192.0.2.1"] * 2 * message_limits.CONNECTIONS_AT_FULL_RATE))
    assert max(waited) > BURST_SECONDS - 1


def test_long_messages_of_all_and_of_a_network_are_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of one server come one after another; a session is kept for a while."""
    monkeypatch.setenv("EXPLORER_LIMIT_MESSAGES_BYTES", str(8 * LARGE_MESSAGE))
    monkeypatch.setenv("EXPLORER_LIMIT_NETWORK_SHARE", "50")
    monkeypatch.setattr(RateLimit, "wait", lambda *_: 0)
    messages, ends_of_sessions = MessageLimits(Inside(), lambda _: True), list[Callable[[], None]]()

    def call_later(_loop: Any, seconds: float, what: Callable[..., None], *args: Any) -> None:
        assert seconds == message_limits.SESSION_SECONDS
        ends_of_sessions.append(partial(what, *args))

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_later", call_later)

    def is_heard(client: int, *said: bytes) -> bool:
        scope = scope_of("/_stcore/stream", kind="websocket", client=f"192.0.2.{client}")
        sent = ask(messages, scope, said).sent
        assert [each["code"] for each in sent] == [message_limits.TOO_LARGE] * len(sent)
        return sent == []

    assert is_heard(1, LONG, SHORT, LONG), "the longest of a connection counts, once"
    assert is_heard(1, LONG)
    assert not is_heard(1, LONG), "the half that one network may have"
    assert is_heard(1, SHORT), "who is brief is always heard"
    assert is_heard(2, LONG)
    assert is_heard(3, LONG)
    assert not is_heard(4, LONG), "all there is"
    for end in ends_of_sessions:
        end()
    assert is_heard(4, LONG), "the sessions of those who left are gone"


def test_a_moment_of_many_is_free_and_then_they_come_in_step() -> None:
    rate = RateLimit(10)
    begun = [rate.wait(100.0) for _ in range(BURST_SECONDS * 10)]
    assert set(begun) == {0.0}
    assert [round(rate.wait(100.0), 6) for _ in range(3)] == [0.1, 0.2, 0.3]
    assert round(rate.wait(100.4), 6) == 0.0
    assert rate.wait(1_000.0) == 0.0


def websocket(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One of uvicorn's, open, as the server makes it."""
    config = Config(Inside(), log_config=None)
    config.load()
    theirs = message_limits.WEBSOCKET
    monkeypatch.setattr(theirs, "connection_made", theirs.connection_made)
    message_limits.limit_frames()
    connection: Any = config.ws_protocol_class(config, ServerState(), {}, Mock())  # type: ignore[misc, call-arg]
    connection.conn = ServerProtocol(state=OPEN)
    connection.connection_made(asyncio.Transport())
    return connection.conn


def frames(opcode: Opcode, size: int, count: int) -> bytes:
    """As a browser sends them; the first of several that are one message says so."""
    kinds = [opcode] * count
    if opcode is Opcode.CONT:
        kinds[0] = Opcode.BINARY
    ends = opcode is not Opcode.CONT
    return b"".join(Frame(kind, b"x" * size, ends).serialize(mask=True) for kind in kinds)


@pytest.fixture
def closed_for(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], str]:
    """What a WebSocket is told at its end after these bytes; empty if it goes on.

    Time stands still.
    """
    monkeypatch.setattr(message_limits, "monotonic", lambda: 1_000.0)
    monkeypatch.setenv("EXPLORER_LIMIT_MESSAGE_RATE", "2")

    def closed_for(data: bytes) -> str:
        protocol = websocket(monkeypatch)
        protocol.receive_data(data)
        return protocol.close_sent.reason if protocol.close_sent else ""

    return closed_for


MOST_FRAMES = message_limits.SMALL_FRAMES_PER_MESSAGE * BURST_SECONDS * 2


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.PONG, Opcode.BINARY, Opcode.CONT])
def test_too_fast_small_frames_close_it(opcode: Opcode, closed_for: Callable[[bytes], str]) -> None:
    assert closed_for(frames(opcode, 9, MOST_FRAMES)) == ""
    assert closed_for(frames(opcode, 9, MOST_FRAMES + 1)) == message_limits.TOO_MANY_FRAMES


def test_many_frames(closed_for: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch) -> None:
    long = frames(Opcode.CONT, message_limits.SMALL_FRAME, MOST_FRAMES + 1)
    assert closed_for(long) == ""
    short = frames(Opcode.CONT, message_limits.SMALL_FRAME - 1, MOST_FRAMES + 1)
    assert closed_for(short) == message_limits.TOO_MANY_FRAMES
    monkeypatch.setenv("EXPLORER_LIMIT_MESSAGE_BYTES", str(2 * message_limits.SMALL_FRAME))
    assert "exceeds limit" in closed_for(long), "longer than a message may be"
