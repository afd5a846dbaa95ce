"""Connections that say nothing are closed, and one too many is told so, before the application."""

import asyncio
import gc
import logging
import resource
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock
from weakref import ref

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from explorer.server import connections
from explorer.server.connections import (
    OF_ONE_READER,
    PROTOCOL,
    SILENT_SECONDS,
    WEBSOCKET,
    begin,
    begin_websocket,
    is_noted,
)
from explorer.system.limits import MESSAGE_BYTES, SESSIONS, SESSIONS_OF_ADDRESS
from tests.server.asking import HERE, Inside, in_a_loop


class Line(asyncio.Transport):
    """The other end of a connection, as much of it as is looked at."""

    def __init__(self, client: str) -> None:
        super().__init__({"peername": (client, 50_000), "sockname": HERE})
        self.said, self.waiting, self.end = b"", 0, ""
        self.protocol: Any = None

    def write(self, data: Any) -> None:
        self.said += data

    def close(self) -> None:
        self.end = self.end or "closed"

    def abort(self) -> None:
        self.end = "aborted"

    def is_closing(self) -> bool:
        return bool(self.end)

    def get_protocol(self) -> Any:
        return self.protocol

    def get_write_buffer_size(self) -> int:
        return self.waiting


class Loop:
    """Keeps what is to be done later."""

    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []

    def call_later(self, seconds: float, what: Callable[..., None], *args: Any) -> None:
        assert seconds == SILENT_SECONDS
        self.later.append(lambda: what(*args))

    def go_on(self) -> None:
        """So much time passes."""
        due, self.later = self.later, []
        for each in due:
            each()


class Place:
    """A server as uvicorn has it, without a socket."""

    def __init__(self) -> None:
        self.config = Config(Inside(), log_config=None, forwarded_allow_ips="192.0.2.99")
        self.state, self.loop = ServerState(), Loop()

    def come(self, client: str = "192.0.2.1") -> Line:
        connection = PROTOCOL(self.config, self.state, {}, self.loop)
        line = Line(client)
        line.protocol = connection
        begin(connection, line)
        return line

    def come_as_websocket(self) -> Line:
        connection, line = WEBSOCKET(self.config, self.state, {}, self.loop), Line("192.0.2.1")
        line.protocol, connection.loop = connection, self.loop
        begin_websocket(connection, line)
        return line


@in_a_loop
async def test_one_too_many_of_a_network_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_SESSIONS_OF_ADDRESS", "1")
    place = Place()
    lines = [place.come() for _ in range(OF_ONE_READER + 1)]
    assert [line.end for line in lines] == [*[""] * OF_ONE_READER, "closed"]
    head, _, sentence = lines[-1].said.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 503 ")
    assert sentence.strip() == SESSIONS_OF_ADDRESS.refusal()
    assert place.come("192.0.2.2").end == ""
    assert [place.come("192.0.2.99").end for _ in range(9)] == [""] * 9, "a trusted proxy"


@in_a_loop
async def test_half_of_the_files_are_for_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (4, 4))
    place = Place()
    first, second, third = (place.come(f"192.0.2.{each}") for each in range(3))
    assert (first.end, second.end, third.end) == ("", "", "closed")
    assert SESSIONS.refusal() in third.said.decode()


def test_the_protocol_that_is_bound_is_the_one_that_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = Config(Inside(), log_config=None)
    config.load()
    used: list[Any] = [config.http_protocol_class, config.ws_protocol_class]
    assert used == [PROTOCOL, WEBSOCKET]
    for each in used:
        monkeypatch.setattr(each, "connection_made", each.connection_made)
    connections.bound()
    assert [each.connection_made for each in used] == [begin, begin_websocket]


@in_a_loop
async def test_a_message_is_as_long_as_the_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_MESSAGE_BYTES", "12345")
    place = Place()
    place.come()
    assert place.config.ws_max_size == MESSAGE_BYTES.most == 12_345


@pytest.mark.parametrize(
    ("what", "cycle", "waiting", "end"),
    [
        ("nothing was ever asked", None, 0, "aborted"),
        ("the answer is given, and nothing is asked any more", True, 0, "aborted"),
        ("an answer is computed", False, 0, ""),
        ("nobody takes what is answered", False, 9, "aborted"),
    ],
)
@in_a_loop
async def test_who_is_silent_from_one_look_to_the_next_is_closed(
    what: str, cycle: bool | None, waiting: int, end: str
) -> None:
    place = Place()
    line = place.come()
    line.waiting = waiting
    if cycle is not None:
        line.protocol.cycle = Mock(response_complete=cycle)
    place.loop.go_on()
    assert line.end == "", "one look is none"
    place.loop.go_on()
    assert line.end == end, what
    assert len(place.loop.later) == (end == "")


@in_a_loop
async def test_who_asks_again_or_takes_more_is_kept() -> None:
    place = Place()
    asks, takes = place.come(), place.come()
    for waiting in (9, 8, 7):
        asks.protocol.cycle = Mock(response_complete=True)
        takes.waiting = waiting
        place.loop.go_on()
    assert (asks.end, takes.end) == ("", "")


@pytest.mark.parametrize(
    ("what", "waiting", "is_closed", "end"),
    [
        ("it is silent, and is pinged", 0, False, ""),
        ("nobody takes what is answered", 9, False, "aborted"),
        ("it is closed, and nobody takes the rest", 9, True, "aborted"),
    ],
)
@in_a_loop
async def test_a_websocket_ends_where_nobody_takes_anything(
    what: str, waiting: int, *, is_closed: bool, end: str
) -> None:
    place = Place()
    line = place.come_as_websocket()
    line.waiting = waiting
    if is_closed:
        line.close()
    for _ in range(2):
        place.loop.go_on()
    assert line.end == end, what


@in_a_loop
async def test_who_has_left_or_became_a_websocket_is_looked_at_no_more() -> None:
    place = Place()
    for line in (place.come(), place.come_as_websocket()):
        line.protocol.connection_lost(None)
    place.loop.go_on()
    assert place.loop.later == []


@in_a_loop
async def test_nothing_of_one_that_has_ended_is_kept() -> None:
    """Not even until the garbage is collected: a refused request has up to 64 kB, or more."""
    gc.disable()
    try:
        place = Place()
        for said in (b"GET / HTTP/1.1\r\n" + 300 * b"a:b\r\n", b"\0\0\r\n\r\n", b"x" * 70_000):
            line = place.come()
            known, connection = ref(line.protocol), line.protocol
            connection.data_received(said)
            assert line.end == "closed"
            connection.connection_lost(None)
            line.protocol = None
            del connection
            assert known() is None
    finally:
        gc.enable()


def test_who_is_refused_leaves_no_line_in_the_log() -> None:
    for said, noted in [*((each, False) for each in connections.WHAT_STRANGERS_CAUSE), ("x", True)]:
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, said, None, None)
        assert is_noted(record) == noted
