"""Bounds on bytes that come in tiny pieces: each costs the loop as much as a message does.

A quarter of a megabyte is read at once. In frames of six bytes, in chunks of one or in lines of
three it took the loop up to a second, for each connection, and every reader waited.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

import h11
from websockets.exceptions import ProtocolError
from websockets.frames import Frame

from explorer.server.incoming_messages import Pace
from explorer.system.limits import MESSAGE_RATE

LINES, HEAD = 200, 64_000
"""Of what is asked, before its body: a browser sends 20 lines, and text of two long sentences."""
LITTLE = 1_000
"""Bytes; browsers cut long messages, into larger frames than this."""
FRAMES = 10
"""Little frames that may come for each message."""
TOO_MANY_LINES = "The head of this request has too many lines, or too long ones."
IN_CHUNKS = "A request has to say how large it is, as those of browsers do."
TOO_MANY_FRAMES = "These frames are too small to come so fast."


class Requests(h11.Connection):
    """Refuses a request of many lines, or of a body in chunks, before it is read.

    Browsers send neither. No error holds on to what was received: h11's own do, in a circle that
    is collected late, and so a gigabyte of refused requests was kept.
    """

    def next_event(self) -> Any:
        try:
            if self.their_state is h11.IDLE:
                head, _, _ = self.trailing_data[0].partition(b"\r\n\r\n")
                if head.count(b"\n") > LINES or len(head) > HEAD:
                    raise h11.RemoteProtocolError(TOO_MANY_LINES)
            event = super().next_event()
            if isinstance(event, h11.Request) and _is_in_chunks(event):
                raise h11.RemoteProtocolError(IN_CHUNKS)
        except h11.RemoteProtocolError as error:
            raise error.with_traceback(None) from None
        return event


def _is_in_chunks(request: h11.Request) -> bool:
    return any(name == b"transfer-encoding" for name, _ in request.headers)


def bound_requests(connection: Any) -> None:
    """Of an HTTP connection of uvicorn's, where it is read by h11."""
    if isinstance(getattr(connection, "conn", None), h11.Connection):
        connection.conn.__class__ = Requests


def bound_frames(connection: Any) -> None:
    """Of a WebSocket of uvicorn's: it is closed where little frames come too fast.

    Pings are among them, which are answered whether or not anybody takes the answers.
    """
    pace = Pace(FRAMES * MESSAGE_RATE.most)
    receive = connection.conn.recv_frame

    def receive_in_time(frame: Frame) -> None:
        if len(frame.data) < LITTLE and pace.wait(monotonic()):
            raise ProtocolError(TOO_MANY_FRAMES)
        receive(frame)

    connection.conn.recv_frame = receive_in_time
