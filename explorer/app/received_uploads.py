"""Uploads that no page has opened yet: Streamlit keeps them in memory, and this module counts them.

Each upload counts from its first byte, with the size that it declares. If there is no room, the
network that uses the most memory loses the oldest upload of its reader with the most: one person
can pose as many readers, but comes from one network. An upload that is refused, opened or removed
from the form is freed at once; those of readers who have left are freed soon after.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from explorer.app import streamlit_patches
from explorer.system import limits

LEAST_COUNTED = 500_000
"""A file counts as at least this many bytes, which bounds the number of files."""
TWICE = "This file is already being uploaded. Wait until it is complete."
TAKEN_OUT = "The upload was removed from the form."
Place = tuple[str, str]
"""A session and one of its files."""
Source = tuple[str, str]
"""A network, and a reader in it."""


class UploadRefusedError(Exception):
    """Says why an upload is not received; `status` is the HTTP status."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(eq=False)
class IncomingUpload:
    """One file of a session: it is arriving, or waits in memory until a page opens it."""

    place: Place
    source: Source
    bytes: int
    stop: Callable[[], None] | None
    """Stops the upload; None once it has arrived."""
    refusal: str = ""
    """Why the upload was stopped."""


class ReceivedUploads:
    """The uploads of one server. Any thread may free one; only the server's loop starts them."""

    def __init__(self) -> None:
        self._files: dict[Place, IncomingUpload] = {}
        """From the oldest to the newest."""
        self._largest: dict[str, int] = {}
        self._notes: dict[str, str] = {}
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """Bytes of all uploads."""
        with self._lock:
            return sum(upload.bytes for upload in self._files.values())

    def allow(self, session: str, largest: int) -> None:
        """Set how large one upload of this session may be, if not the default."""
        self._largest[session] = largest

    def largest(self, session: str) -> int:
        """Bytes that one upload of this session may have."""
        return self._largest.get(session, limits.UPLOAD_BYTES.most)

    def begin(
        self, place: Place, source: Source, size: int, stop: Callable[[], None]
    ) -> IncomingUpload:
        """Make room for a new upload; UploadRefusedError if there is none."""
        new = IncomingUpload(place, source, max(size, LEAST_COUNTED), stop)
        with self._lock:
            if (before := self._files.get(place)) and before.stop:
                raise UploadRefusedError(TWICE, 409)
            losing = self._room_for(new)
            self._files.pop(place, None)
            self._files[place] = new
        if before:
            streamlit_patches.forget_file(*place)
        for upload in losing:
            self._end(upload, limits.UPLOADS_RECEIVING.refusal())
            self.note(upload.place[0], upload.refusal)
        return new

    def _room_for(self, new: IncomingUpload) -> list[IncomingUpload]:
        """The uploads to drop: the oldest of the source with the most, if that is another one."""
        by_source = defaultdict[Source, deque[IncomingUpload]](deque)
        of_source, of_network = Counter[Source](), Counter[str]()
        for upload in (*self._files.values(), new):
            by_source[upload.source].append(upload)
            of_source[upload.source] += upload.bytes
            of_network[upload.source[0]] += upload.bytes
        of_reader = sum(size for source, size in of_source.items() if source[1] == new.source[1])
        if not limits.UPLOADS_RECEIVING_OF_READER.allows(of_reader):
            raise UploadRefusedError(limits.UPLOADS_RECEIVING_OF_READER.refusal(), 413)

        def share(source: Source) -> tuple[int, int]:
            return of_network[source[0]], of_source[source]

        losing = []
        while not limits.UPLOADS_RECEIVING.allows(of_network.total()):
            most = max(of_source, key=share)
            if share(most) == share(new.source):
                raise UploadRefusedError(limits.UPLOADS_RECEIVING.refusal(), 503)
            losing.append(by_source[most].popleft())
            of_source[most] -= losing[-1].bytes
            of_network[most[0]] -= losing[-1].bytes
        return losing

    def give_up(self, received: IncomingUpload) -> None:
        """The upload failed or was stopped."""
        with self._lock:
            if self._files.get(received.place) is received:
                del self._files[received.place]
        streamlit_patches.forget_file(*received.place)

    def forget(self, session: str, file: str) -> None:
        """Free a file that a page has opened or refused, unless it is being uploaded again."""
        with self._lock:
            upload = self._files.get((session, file))
        if upload and not upload.stop:
            self.give_up(upload)

    def take_out(self, place: Place) -> None:
        """Stop or free an upload that was removed from the form."""
        with self._lock:
            upload = self._files.get(place)
        if upload:
            self._end(upload)

    def free_left(self) -> None:
        """Free the uploads of sessions whose readers have left."""
        with self._lock:
            files = list(self._files.values())
        sessions = {*self._largest, *self._notes, *(upload.place[0] for upload in files)}
        left = {session for session in sessions if not streamlit_patches.is_connected(session)}
        for upload in files:
            if upload.place[0] in left:
                self._end(upload)
        for session in left:
            self._largest.pop(session, None)
            self._notes.pop(session, None)

    def _end(self, received: IncomingUpload, why: str = TAKEN_OUT) -> None:
        received.refusal = why
        self.give_up(received)
        if received.stop:
            received.stop()

    def note(self, session: str, sentence: str) -> None:
        """Have the page of this session show a sentence: browsers show only an HTTP status."""
        if self._notes.get(session) != sentence:
            self._notes[session] = sentence
            streamlit_patches.run_again(session)

    def take_note(self, session: str) -> str:
        """The sentence for the page of this session, once."""
        return self._notes.pop(session, "")


RECEIVED = ReceivedUploads()
"""The uploads of this server."""
