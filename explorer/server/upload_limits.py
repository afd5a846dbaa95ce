"""Limits on uploads: an upload beyond a limit is refused before Streamlit reads it.

Streamlit accepts any number of files, keeps them in memory while their session lives, and checks
only the size of each. `explorer.app.received_uploads` counts every file from its first byte. A file
that is too large, too slow, without a session or without a declared size is not read.
"""

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
from explorer.server.connection_limits import client_network
from explorer.server.error_pages import send_error
from explorer.system import limits

UPLOADS = "/_stcore/upload_file/"
SESSION_AND_FILE = re.compile(r"([0-9A-Za-z-]{1,64})/([0-9a-f-]{36})")
FORM_BYTES = 1_000_000
"""Bytes that a form may add to its file."""
RECONNECT_SECONDS = 10.0
"""The time that a session is given to connect again before its files are freed."""
DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
DISCONNECTED = "This page is no longer connected. Reload it and upload the file again."
NOT_AN_UPLOAD = "This is not an upload of this app. Reload its page and upload the file again."
NO_LENGTH = "An upload must declare its size, as browsers do."
TOO_LONG = "The upload was longer than it declared and was ended. Upload the file again."


class UploadLimits:
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
            await self._check(scope, receive, _Answer(send))

    async def _check(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
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
                await send_error(scope, receive, answer, error.status, str(error))
            if session:
                self.received.note(session, str(error))
        except ClientDisconnect:  # the reader cancelled it, or left
            pass
        finally:
            if session and not streamlit_patches.is_connected(session):
                self._free_soon()

    async def _receive(
        self, place: Place, scope: Scope, receive: Receive, answer: "_Answer"
    ) -> None:
        """Count an upload while it arrives, until it is complete or stopped."""
        length = Headers(scope=scope).get("content-length", "")
        if not re.fullmatch(r"[0-9]{1,15}", length):
            raise UploadRefusedError(NO_LENGTH, 411)
        left = declared = int(length)
        most = self.received.largest(place[0])
        if declared > most + FORM_BYTES:
            raise UploadRefusedError(limits.UPLOAD_BYTES.refusal(declared, most), 413)
        timeout = asyncio.timeout(limits.UPLOAD_SECONDS.most)

        async def receive_counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise UploadRefusedError(TOO_LONG, 400)
            if not message.get("more_body") and not timeout.expired():
                timeout.reschedule(None)  # all of it is here
            return message

        def stop() -> None:
            if not timeout.expired():
                timeout.reschedule(asyncio.get_running_loop().time())

        key = key_in(HTTPConnection(scope).cookies)
        reader = owner_of(key) if key else place[0]
        upload = self.received.begin(place, (client_network(scope), reader), declared, stop)
        try:
            async with timeout:
                await self.app(scope, receive_counted, answer)
                if answer.status == HTTPStatus.NO_CONTENT and not upload.refusal:
                    upload.stop = None  # the whole file is in memory
        except TimeoutError:
            reason = upload.refusal or limits.UPLOAD_SECONDS.refusal()
            raise UploadRefusedError(reason, 408) from None
        except OSError as error:  # large uploads wait on disk until they are whole
            if error.errno not in DISK_FULL:
                raise
            raise UploadRefusedError(limits.DISK_LEFT.refusal(upload.bytes), 503) from None
        finally:
            if upload.stop:
                self.received.give_up(upload)

    def _free_soon(self) -> None:
        """Free the uploads of readers who have left, after they have had time to reconnect."""
        asyncio.get_running_loop().call_later(RECONNECT_SECONDS, self.received.free_left)


class _Answer:
    """Passes an answer on and notes its `status`."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self.send(message)


def _place(scope: Scope) -> Place:
    """The session and the file in an address, if they belong to the reader who asks."""
    match = SESSION_AND_FILE.fullmatch(scope["path"].partition(UPLOADS)[2])
    if match is None:
        raise UploadRefusedError(NOT_AN_UPLOAD, 400)
    session, file = match.groups()
    key = key_in(streamlit_patches.cookies_of(session))
    is_owner = key == key_in(HTTPConnection(scope).cookies)
    if not (is_owner and streamlit_patches.is_connected(session)):
        raise UploadRefusedError(DISCONNECTED, 410)
    return session, file
