"""What a WebSocket may send: frames, and messages that a reader's page sends."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from uvicorn import Config
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from explorer.app.streamlit_patches import KNOWN_MESSAGES, WIDGETS, is_for_readers
from explorer.server import message_limits
from explorer.server.message_limits import BURST_SECONDS, LARGE_MESSAGE, MessageLimits, RateLimit
from tests.calls import run_in_thread
from tests.server.asking import Answer, Inside, ask, asked, scope_of


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
