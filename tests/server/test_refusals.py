"""A refusal is a page to a browser, which needs nothing else of the server, and text to others."""

import json
import re
from functools import partial

from starlette.types import Receive, Scope, Send

from explorer.server.refusals import refuse
from tests.server.asking import Answer, ask, scope_of

SENTENCE = "This server is full (<b>400</b> open connections): try again in a few minutes."


def refused(accept: str, *, kind: str = "http", **headers: str) -> Answer:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await partial(refuse, scope, receive, send, 503, SENTENCE)(**headers)

    return ask(app, scope_of(headers={"accept": accept}, kind=kind))


def test_a_browser_is_given_a_page_that_needs_nothing_else() -> None:
    answer = refused("text/html,application/xhtml+xml,*/*;q=0.8", retry_after="60")
    assert (answer.status, answer.headers["retry-after"]) == (503, "60")
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-store"
    assert SENTENCE.replace("<", "&lt;").replace(">", "&gt;") in answer.text
    assert "prefers-color-scheme: dark" in answer.text
    assert not re.findall(r"<script|\bsrc=|url\(|https?:|<link", answer.text)
    assert 'href=""' in answer.text, "the way to try again"
    assert len(answer.text) < 2_000
    assert "href" not in refused("text/html").text, "where it helps to try again"


def test_others_are_given_the_sentence() -> None:
    for answer in (refused("*/*"), refused(""), refused("text/html", kind="websocket")):
        assert (answer.status, answer.text) == (503, f"{SENTENCE}\n")
        assert answer.headers["content-type"].startswith("text/plain")


def test_an_open_page_is_given_what_it_shows() -> None:
    """Streamlit's page looks for the server before it connects; it shows a body that is JSON."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await refuse(scope, receive, send, 503, SENTENCE)

    answer = ask(app, scope_of("/_stcore/health", {"accept": "*/*"}))
    assert (answer.status, json.loads(answer.text)) == (503, SENTENCE)
