"""What goes to the server: nothing while the pointer moves, one message for a click."""

from __future__ import annotations

from playwright.sync_api import WebSocket, expect

from tests.browser.visiting import Visitor


def test_pointing_asks_nobody_and_a_click_asks_once(visitor: Visitor) -> None:
    sent: list[object] = []

    def count(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: sent.append(frame))

    visitor.page.on("websocket", count)
    page = visitor.open("/attention?model=shakespeare&layer=0&head=0&view=Matrix")
    visitor.drawn("overview")
    before = visitor.picture("attention_head")
    opened = len(sent)
    assert opened, "the page was never served"

    said: set[str] = set()
    for row, column in ((0, 0), (2, 1), (3, 3), (4, 2)):
        said.add(visitor.point("attention_head", row, column).inner_text())
    visitor.away()
    assert len(said) == 4, "every cell says what it holds"
    assert len(sent) == opened

    visitor.pick("overview", layer=1, head=2)
    visitor.changed("attention_head", before)
    expect(page.get_by_text("Layer 1, head 2", exact=True).first).to_be_visible()
    visitor.rest()
    assert len(sent) == opened + 1
    page.remove_listener("websocket", count)
