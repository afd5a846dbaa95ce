"""Every answer carries the security headers, and nothing but the headers is touched."""

from typing import Any
from unittest.mock import AsyncMock

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket

import app
from explorer.server.answer_pieces import PIECE, AnswerPieces
from explorer.server.front_page import ADDRESS, CLOSED_MENU, PAGE, FrontPage
from explorer.server.security_headers import HEADERS, POLICY, SecurityHeaders
from tests.calls import run_in_thread


async def _talk(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


def test_every_answer_carries_the_headers_and_is_else_left_alone() -> None:
    theirs = {"X-Content-Type-Options": "anything"}
    routes = [
        Route("/plain", lambda request: PlainTextResponse("words", headers=theirs)),
        Route("/parts", lambda request: StreamingResponse(iter(["a", "b"]))),
        Route("/broken", lambda request: 1 / 0),
        WebSocketRoute("/socket", _talk),
    ]
    client = TestClient(SecurityHeaders(Starlette(routes=routes)), raise_server_exceptions=False)
    for path in ["/plain", "/parts", "/nothing", "/broken"]:
        answer = client.get(path)
        for name, value in HEADERS.items():
            assert answer.headers.get_list(name) == [value], path
    assert client.get("/parts").text == "ab"
    with client.websocket_connect("/socket") as socket:
        assert socket.receive_text() == "hello"


def test_the_page_says_where_the_server_is_and_no_other_answer_changes() -> None:
    theirs = HTMLResponse("theirs", headers={"ETag": "x"})
    routes = [Route(path, lambda request: theirs) for path in ("/", "/heads", "/media/kept.html")]
    client = TestClient(FrontPage(Starlette(routes=routes)))
    answers = [client.get(route.path) for route in routes]
    ours = f"<script>{ADDRESS}</script><script>{CLOSED_MENU}</script>"
    scripts = [ours in answer.text for answer in answers]
    assert scripts == ["etag" not in answer.headers for answer in answers] == [True, True, False]
    assert client.head("/").headers["content-length"] == str(len(PAGE))


def test_a_long_answer_is_handed_on_in_pieces() -> None:
    """So who reads slowly holds one piece of it, and not a copy of the whole."""
    long, sent = bytes(range(250)) * 1000, list[Any]()
    scope, answer = {"type": "http"}, AnswerPieces(Response(long))
    run_in_thread(answer(scope, AsyncMock(), AsyncMock(side_effect=sent.append)))
    bodies = [message["body"] for message in sent[1:]]
    assert (b"".join(bodies), max(map(len, bodies))) == (long, PIECE)
    assert [message.get("more_body", False) for message in sent[1:]] == [True] * 3 + [False]


def test_the_app_wears_them_and_they_name_no_other_host() -> None:
    assert "http" not in HEADERS["Content-Security-Policy"]
    assert "'unsafe-inline'" not in POLICY["script-src"]
    names = [getattr(each.cls, "__name__", "") for each in app.app._user_middleware]
    assert {AnswerPieces.__name__, SecurityHeaders.__name__} <= {*names}
