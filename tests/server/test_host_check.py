"""Requests that are let in, what the others are answered, and the headers of every answer."""

import json
import re
from typing import Any
from unittest.mock import AsyncMock

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

import app
from explorer.server import host_check
from explorer.server.answer_pieces import PIECE, AnswerPieces
from explorer.server.error_pages import send_error
from explorer.server.front_page import ADDRESS, CLOSED_MENU, PAGE, FrontPage
from explorer.server.security_headers import HEADERS, POLICY, SecurityHeaders
from tests.calls import run_in_thread
from tests.server.asking import Answer, Inside, ask, scope_of


def come(*, kind: str = "http", server: str = "127.0.0.1", path: str = "/", **said: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in said.items()}
    return ask(host_check.HostCheck(Inside()), scope_of(path, named, kind=kind, server=server))


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_another_name_is_refused_in_a_sentence_that_says_the_way_out(kind: str) -> None:
    """DNS rebinding: the name and the page are both the attacker's."""
    hosts = ["evil.example", "evil.example:8501", "localhost.evil.example", "6.6.6.6", "[::2]:8501"]
    hosts += ["", "a b", "localhost:8501:1", "user@localhost", "localhost/", "0.0.0.0:8501"]
    for host in hosts:
        answer = come(kind=kind, host=host, origin=f"http://{host}" if host else "")
        assert (answer.status, answer.sentence) == (421, host_check.WRONG_HOST), host
    assert "EXPLORER_HOSTS" in host_check.WRONG_HOST


def test_a_request_with_two_hosts_is_refused_and_what_a_proxy_says_was_asked_not_believed() -> None:
    assert come(host="evil.example", x_forwarded_host="localhost").status == 421
    assert come(host="localhost", x_forwarded_host="evil.example").status == 200
    scope = scope_of()
    scope["headers"].append((b"host", b"evil.example"))
    assert ask(host_check.HostCheck(Inside()), scope).status == 421


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_this_machine_is_let_in(kind: str) -> None:
    opened = 200 if kind == "http" else 101
    for host in ["localhost", "LOCALHOST:8501", "localhost.", "127.0.0.1:80", "[::1]:8501"]:
        assert come(kind=kind, host=host, origin=f"http://{host}").status == opened, host


def test_the_address_that_was_connected_to_is_one_of_this_machine() -> None:
    assert come(host="192.0.2.7:8501", server="192.0.2.7").status == 200
    assert come(host="192.0.2.7:8501", server="::ffff:192.0.2.7").status == 200
    assert come(host="192.0.2.8:8501", server="192.0.2.7").status == 421


def test_a_setting_names_more_or_is_said_to_name_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_HOSTS", "demo.example.org, *.lab.example.org,192.0.2.9")
    for host in ["demo.example.org", "Demo.Example.Org:443", "a.lab.example.org", "192.0.2.9"]:
        assert come(host=host).status == 200, host
    for host in ["example.org", "lab.example.org", "a.b.lab.example.org", "xlab.example.org"]:
        assert come(host=host).status == 421, host
    assert host_check.fault() is None
    for wrong in ("https://demo.example.org", "demo.example.org:80", "*", "a b"):
        monkeypatch.setenv("EXPLORER_HOSTS", f"localhost,{wrong}")
        assert re.search(f"without a scheme or a port.*{re.escape(wrong)}", str(host_check.fault()))
    at_start = host_check.HostCheck(Inside(), hosts=["Lab-Server.local", "", None])  # type: ignore[list-item]
    assert ask(at_start, scope_of(headers={"host": "lab-server.local:8501"})).status == 200


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_page_of_another_site_is_refused(kind: str) -> None:
    origins = ["https://evil.example", "null", "http://localhost", "http://localhost:3000"]
    origins += ["http://127.0.0.1:8501", "http://localhost:8501.evil.example", "file://", "x"]
    for origin in origins:
        answer = come(kind=kind, origin=origin)
        assert (answer.status, answer.sentence) == (403, host_check.WRONG_ORIGIN), origin


def test_a_page_of_this_server_is_let_in_also_behind_a_proxy_that_ends_tls() -> None:
    for host, status in (("localhost", 200), ("localhost:443", 200), ("localhost:80", 403)):
        assert come(host=host, origin="https://localhost").status == status, host


def test_where_a_browser_says_no_origin_it_says_how_far_away_the_page_is() -> None:
    """Pictures and scripts that another site's page names are fetched without an origin."""
    for site, mode, status in [
        ("same-origin", "cors", 200),
        ("none", "navigate", 200),
        ("cross-site", "navigate", 200),  # a link
        ("cross-site", "no-cors", 403),
        ("same-site", "no-cors", 403),
    ]:
        assert come(sec_fetch_site=site, sec_fetch_mode=mode).status == status, (site, mode)
    away = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    posted = scope_of(headers=away, method="POST")
    assert ask(host_check.HostCheck(Inside()), posted).status == 403


def test_what_the_app_does_not_use_is_not_there() -> None:
    core = ["metrics", "agent/interact", "agent/mcp", "agent/openapi.json", "script-health-check"]
    paths = [*(f"/_stcore/{each}" for each in core), "/auth/login", "/auth/logout"]
    paths += ["/oauth2callback", "/below/_stcore/metrics"]
    paths += [f"{path}\n" for path in paths] + ["/a\n/_stcore/metrics", "/attention\0"]
    for path in paths:
        answer = come(path=path)
        assert (answer.status, answer.sentence) == (404, host_check.NOT_FOUND), path
    for path in ["/", "/attention", "/_stcore/health", "/_stcore/host-config", "/static/js/a.js"]:
        assert come(path=path).status == 200, path


def test_a_server_that_cannot_answer_a_handshake_closes_it() -> None:
    scope = scope_of(headers={"origin": "null"}, kind="websocket") | {"extensions": {}}
    assert [each["type"] for each in ask(host_check.HostCheck(Inside()), scope).sent] == [
        "websocket.close"
    ]


def test_the_printed_address_opens() -> None:
    for address in ("localhost", None, "0.0.0.0"):
        assert host_check.address_to_open(address, 8501, by_tls=False) == "http://localhost:8501"
    assert host_check.address_to_open("::", 8501, by_tls=True) == "https://localhost:8501"
    assert host_check.address_to_open("::1", 8501, by_tls=False) == "http://[::1]:8501"
    assert host_check.address_to_open("a.example.org", 1, by_tls=True) == "https://a.example.org:1"


SENTENCE = "This server is full (<b>400</b> open connections). Try again in a few minutes."


def refused(accept: str, *, kind: str = "http", path: str = "/", **headers: str) -> Answer:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send_error(scope, receive, send, 503, SENTENCE, **headers)

    answer = ask(app, scope_of(path, {"accept": accept}, kind=kind))
    assert answer.status == 503
    return answer


def test_a_refusal_is_a_page_to_a_browser_which_needs_nothing_else() -> None:
    answer = refused("text/html,application/xhtml+xml,*/*;q=0.8", retry_after="60")
    assert answer.headers["retry-after"] == "60"
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-store"
    assert SENTENCE.replace("<", "&lt;").replace(">", "&gt;") in answer.text
    assert "prefers-color-scheme: dark" in answer.text
    assert not re.findall(r"<script|\bsrc=|url\(|https?:|<link", answer.text)
    assert 'href=""' in answer.text, "the way to try again"
    assert len(answer.text) < 2_000
    assert "href" not in refused("text/html").text, "where it helps to try again"


def test_others_are_given_the_sentence_and_an_open_page_what_it_shows() -> None:
    """Streamlit's page looks for the server before it connects; it shows a body that is JSON."""
    for answer in (refused("*/*"), refused(""), refused("text/html", kind="websocket")):
        assert answer.text == f"{SENTENCE}\n"
        assert answer.headers["content-type"].startswith("text/plain")
    assert json.loads(refused("*/*", path="/_stcore/health").text) == SENTENCE


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
