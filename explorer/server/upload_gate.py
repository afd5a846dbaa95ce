"""Stands before Streamlit's uploads: what exceeds a limit is refused before it is read.

Streamlit takes as many files as are sent, keeps them in memory while their session lives, and
looks only at the size of each. Here every file is counted from its first byte, by
`explorer.app.received_uploads`, and one that is too large, too slow, of no session or of no
declared size is not read.
"""

from __future__ import annotations

import asyncio
import errno
import re
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.app import streamlit_patches
from explorer.app.reader import key_in, owner_of
from explorer.app.received_uploads import RECEIVED, Place, ReceivedUploads, UploadRefusedError
from explorer.server.crowd import network
from explorer.server.refusals import refuse
from explorer.system import limits

UPLOADS = "/_stcore/upload_file/"
NAMES = re.compile(r"([0-9A-Za-z-]{1,64})/([0-9a-f-]{36})")
FRAMING = 1_000_000
"""Bytes that a form may have around its file."""
STALLED_AFTER = 30.0
"""Seconds without a byte after which nothing more is expected."""
LEFT_AFTER = 10.0
"""Seconds that a session is given to connect again before its files are freed."""
FULL = {errno.ENOSPC, errno.EDQUOT}
GONE = "This page is no longer connected: load it again, then upload the file again."
NO_UPLOAD = "This is no upload of this app: load its page again, then upload the file again."
UNSIZED = "An upload has to say how large it is, as browsers do."
LONGER = "The upload was longer than it said and was ended: upload the file again."
STALLED = "The upload stood still and was ended: upload the file again."


class UploadGate:
    """Counts and bounds what is uploaded; plain ASGI, so that nothing is buffered."""

    def __init__(self, app: ASGIApp, received: ReceivedUploads = RECEIVED) -> None:
        self.app = app
        self.received = received

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            try:
                await self.app(scope, receive, send)
            finally:
                self._free_soon()
        elif scope["type"] != "http" or UPLOADS not in scope["path"]:
            await self.app(scope, receive, send)
        else:
            await self._guard(scope, receive, _Answer(send))

    async def _guard(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        session = ""
        try:
            session, file = _place(scope)
            if scope["method"] == "PUT":
                await self._receive((session, file), scope, receive, answer)
            else:
                await self.app(scope, receive, answer)
                if scope["method"] == "DELETE" and answer.status == HTTPStatus.NO_CONTENT:
                    self.received.take_out((session, file))
        except UploadRefusedError as error:
            if answer.status is None:
                await refuse(scope, receive, answer, error.status, str(error))
            if session:
                self.received.note(session, str(error))
        except ClientDisconnect:  # the reader stopped it, or left
            pass
        finally:
            if session and not streamlit_patches.is_connected(session):
                self._free_soon()

    async def _receive(self, place: Place, scope: Scope, receive: Receive, answer: _Answer) -> None:
        """Let it in as one that counts, until all of it is there or it is ended."""
        size = _declared(scope)
        most = self.received.largest(place[0])
        if size > most + FRAMING:
            raise UploadRefusedError(limits.UPLOAD_BYTES.refusal(size, most), 413)
        now = asyncio.get_running_loop().time
        last = now() + limits.UPLOAD_SECONDS.most
        patience = asyncio.timeout(STALLED_AFTER)

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            if message["type"] == "http.request":
                size -= len(message.get("body", b""))
                if size < 0:
                    raise UploadRefusedError(LONGER, 400)
                is_whole = not message.get("more_body", False)
                patience.reschedule(None if is_whole else min(now() + STALLED_AFTER, last))
            return message

        def stop() -> None:
            if not patience.expired():
                patience.reschedule(now())

        key = key_in(HTTPConnection(scope).cookies)
        reader = owner_of(key) if key else place[0]
        upload = self.received.begin(place, (network(scope), reader), size, stop)
        try:
            async with patience:
                await self.app(scope, counted, answer)
                if answer.status == HTTPStatus.NO_CONTENT and not upload.refusal:
                    self.received.arrived(upload)
        except TimeoutError:
            slow = limits.UPLOAD_SECONDS.refusal() if now() >= last else STALLED
            raise UploadRefusedError(upload.refusal or slow, 408) from None
        except OSError as error:  # large ones wait on disk until they are whole
            if error.errno not in FULL:
                raise
            raise UploadRefusedError(limits.DISK_LEFT.refusal(upload.bytes), 503) from None
        finally:
            if upload.stop:
                self.received.give_up(upload)

    def _free_soon(self) -> None:
        """Look for what readers have left behind, once they had time to connect again."""
        asyncio.get_running_loop().call_later(LEFT_AFTER, self.received.free_left)


class _Answer:
    """Passes an answer on; its status, once it has begun."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self.send(message)


def _place(scope: Scope) -> Place:
    """The session and the file that an address names: those of a reader who is connected."""
    found = NAMES.fullmatch(scope["path"].partition(UPLOADS)[2])
    if found is None:
        raise UploadRefusedError(NO_UPLOAD, 400)
    session, file = found.groups()
    theirs = key_in(streamlit_patches.cookies_of(session))
    is_theirs = theirs == key_in(HTTPConnection(scope).cookies)
    if not (is_theirs and streamlit_patches.is_connected(session)):
        raise UploadRefusedError(GONE, 410)
    return session, file


def _declared(scope: Scope) -> int:
    """How many bytes it says it has."""
    said = Headers(scope=scope).get("content-length", "")
    if not re.fullmatch(r"[0-9]{1,15}", said):
        raise UploadRefusedError(UNSIZED, 411)
    return int(said)
