"""Bytes in tiny pieces: a browser sends none, and each would cost what a message costs."""

from types import SimpleNamespace

import h11
import pytest
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from explorer.server import small_pieces
from explorer.server.incoming_messages import AT_ONCE
from explorer.server.small_pieces import (
    FRAMES,
    HEAD,
    IN_CHUNKS,
    LINES,
    LITTLE,
    TOO_MANY_FRAMES,
    TOO_MANY_LINES,
    Requests,
    bound_frames,
)

FIRST = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


def refused_for(said: bytes) -> str:
    """Why what comes in these bytes is not read; empty where it is."""
    conn = Requests(h11.SERVER)
    conn.receive_data(said)
    try:
        while conn.next_event() not in (h11.NEED_DATA, h11.PAUSED):
            pass
    except h11.RemoteProtocolError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("what", "said", "why"),
    [
        ("lines as of a browser", FIRST + b"a: b\r\n" * 50, ""),
        ("many lines", FIRST + b"a:b\r\n" * LINES, TOO_MANY_LINES),
        ("as many, and all is there", FIRST + b"a:b\r\n" * LINES + b"\r\n", TOO_MANY_LINES),
        ("a long one", FIRST + b"a:" + b"b" * HEAD + b"\r\n\r\n", TOO_MANY_LINES),
        ("a body", FIRST + b"Content-Length: 999\r\n\r\n" + b"\n" * 999, ""),
        ("one in chunks", FIRST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", IN_CHUNKS),
    ],
)
def test_a_request_is_refused_before_its_pieces_are_read(what: str, said: bytes, why: str) -> None:
    assert refused_for(said) == why, what


def test_another_request_in_the_same_bytes_is_refused_as_well() -> None:
    conn = Requests(h11.SERVER)
    conn.receive_data(FIRST + b"\r\n" + FIRST + b"a:b\r\n" * LINES)
    assert [type(conn.next_event()) for _ in range(2)] == [h11.Request, h11.EndOfMessage]
    conn.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
    conn.send(h11.EndOfMessage())
    conn.start_next_cycle()
    with pytest.raises(h11.RemoteProtocolError, match=TOO_MANY_LINES):
        conn.next_event()


def frames(opcode: Opcode, size: int, count: int) -> bytes:
    """As a browser sends them; the first of several that are one message says so."""
    kinds = [opcode] * count
    if opcode is Opcode.CONT:
        kinds[0] = Opcode.BINARY
    ends = opcode is not Opcode.CONT
    return b"".join(Frame(kind, b"x" * size, ends).serialize(mask=True) for kind in kinds)


def closed_for(said: bytes) -> str:
    """What a WebSocket is told at its end after these bytes; empty where it goes on."""
    protocol = ServerProtocol(state=OPEN)
    bound_frames(SimpleNamespace(conn=protocol))
    protocol.receive_data(said)
    return protocol.close_sent.reason if protocol.close_sent else ""


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> int:
    """So many little frames may come in a moment; time stands still."""
    monkeypatch.setattr(small_pieces, "monotonic", lambda: 1_000.0)
    monkeypatch.setenv("EXPLORER_LIMIT_MESSAGE_RATE", "2")
    return FRAMES * AT_ONCE * 2


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.PONG, Opcode.BINARY, Opcode.CONT])
def test_little_frames_that_come_too_fast_close_their_connection(opcode: Opcode, most: int) -> None:
    assert closed_for(frames(opcode, 9, most)) == ""
    assert closed_for(frames(opcode, 9, most + 1)) == TOO_MANY_FRAMES


def test_a_long_message_comes_in_as_many_frames_as_it_likes(most: int) -> None:
    assert closed_for(frames(Opcode.CONT, LITTLE, most + 1)) == ""
    assert closed_for(frames(Opcode.CONT, LITTLE - 1, most + 1)) == TOO_MANY_FRAMES
