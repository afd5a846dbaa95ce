"""A reader without a browser: Streamlit's own messages over its real websocket.

Fifty browsers would measure the browsers. A reader here sends what the page in a
browser sends and takes what it takes, so the time measured is the server's.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from explorer.app.reader import COOKIE, new_key


@dataclass
class Answer:
    """One run of the page's script, as it reached the reader."""

    seconds: float
    size: int
    elements: list[Element] = field(default_factory=list)

    def picture(self) -> bytes:
        """The data of the large picture of one head; empty when there is none."""
        drawn = (e.bidi_component for e in self.elements if e.WhichOneof("type") == BIDI)
        pictures = [each for each in drawn if each.component_name.endswith("matrix")]
        return bytes(pictures[0].bytes) if pictures else b""

    @property
    def failures(self) -> list[str]:
        return [e.exception.message for e in self.elements if e.WhichOneof("type") == "exception"]


BIDI = "bidi_component"
STREAMLIT = Subprotocol("streamlit")
FINISHED = {ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY}


class Reader:
    """One websocket session with the app; `await reader.act(...)` is one rerun."""

    def __init__(self, url: str, *, page: str = "", query: str = "") -> None:
        self.url = url.replace("http", "ws", 1) + "/_stcore/stream"
        self.key = new_key()
        self.page = page
        self.query = query
        self.widgets: dict[str, Any] = {}
        self.states: dict[str, WidgetState] = {}
        self.fragments: dict[str, str] = {}
        """By widget, the part of the page that is drawn again when it changes."""
        self.cache: dict[str, ForwardMsg] = {}
        self.page_hash = ""
        self.socket: ClientConnection | None = None

    async def open(self) -> None:
        cookie = {"Cookie": f"{COOKIE}={self.key}"}
        self.socket = await connect(
            self.url, subprotocols=[STREAMLIT], max_size=None, additional_headers=cookie
        )

    async def close(self) -> None:
        if self.socket is not None:
            await self.socket.close()

    async def pick_head(self, head: int, *before: WidgetState) -> Answer:
        """Choose a head, as the list of the bar does, or the buttons of a bare page."""
        control = self.widgets["head"]
        state = WidgetState(id=control.id)
        if control.DESCRIPTOR.name == "ButtonGroup":
            state.string_array_value.data.append(str(head))
        else:
            state.string_value = str(head)
        return await self.act(*before, state)

    async def type(self, text: str) -> Answer:
        """Put a sentence into the field of the bar."""
        return await self.act(WidgetState(id=self.widgets["text"].id, string_value=text))

    async def turn_to(self, page: str) -> Answer:
        """Follow the link of another page; what the widgets of this one hold stays here."""
        self.page, self.page_hash = page, ""
        self.widgets, self.states, self.fragments = {}, {}, {}
        return await self.act()

    async def act(self, *changed: WidgetState) -> Answer:
        """Change these widgets, the last at last; run the script, and take in all that it sends."""
        assert self.socket is not None
        self.states |= {state.id: state for state in changed}
        message = BackMsg()
        run = message.rerun_script
        run.query_string = self.query
        run.page_name = "" if self.page_hash else self.page
        run.page_script_hash = self.page_hash
        run.fragment_id = self.fragments.get(changed[-1].id, "") if changed else ""
        run.widget_states.widgets.extend(self.states.values())
        run.cached_message_hashes.extend(self.cache)
        run.context_info.timezone = "UTC"
        run.context_info.locale = "en-GB"
        run.context_info.url = self.url
        begun = time.perf_counter()
        await self.socket.send(message.SerializeToString())
        answer = Answer(0, 0)
        async with asyncio.timeout(60):
            while not await self._take(answer):
                pass
        answer.seconds = time.perf_counter() - begun
        self.widgets |= dict(widgets(answer))
        return answer

    async def _take(self, answer: Answer) -> bool:
        """Receive one message; whether it was the last of a finished run."""
        assert self.socket is not None
        data = await self.socket.recv()
        assert isinstance(data, bytes)
        answer.size += len(data)
        message = ForwardMsg.FromString(data)
        if message.ref_hash:
            message = self.cache[message.ref_hash]
        elif message.metadata.cacheable:
            self.cache[message.hash] = message
        kind = message.WhichOneof("type")
        if kind == "navigation":
            self.page_hash = message.navigation.page_script_hash
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            element = message.delta.new_element
            answer.elements.append(element)
            self.fragments[getattr(widget_of(element), "id", "")] = message.delta.fragment_id
        elif kind == "script_finished":
            return message.script_finished in FINISHED
        return False


def widgets(answer: Answer) -> Iterator[tuple[str, Any]]:
    """Every drawn widget with the key its page gave it."""
    for body in map(widget_of, answer.elements):
        identity = getattr(body, "id", "")
        if identity.startswith("$$"):
            yield identity.rsplit("-", 1)[-1], body


def widget_of(element: Element) -> Any:
    """What is drawn, of its own kind."""
    kind = element.WhichOneof("type")
    return getattr(element, kind) if kind else None
