"""Two tabs of one browser are one reader, another browser is another; no script reads the key."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from explorer.app.reader import COOKIE, owner_of
from tests.served import Server

PAGE = """
import streamlit as st
from explorer.app.reader import owner
st.title("Reader")
st.text(owner())
"""
APP = """
import streamlit as st
from starlette.middleware import Middleware
from explorer.server.reader_cookie import ReaderCookie
app = st.App("reader_page.py", middleware=[Middleware(ReaderCookie)])
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A page that says whose it is."""
    (tmp_path / "reader_page.py").write_text(PAGE)
    script = tmp_path / "reader_app.py"
    script.write_text(APP)
    with Server(tmp_path / "runs", script=script) as server:
        yield server


def test_a_browser_is_a_reader(server: Server, browser: Browser) -> None:
    owners = []
    for _ in range(2):
        context = browser.new_context()
        for _ in range(2):
            page = context.new_page()
            page.goto(server.url)
            said = page.get_by_test_id("stText")
            expect(said).to_have_count(1)
            owners.append(said.inner_text())
            assert COOKIE not in page.evaluate("document.cookie")
        (key,) = [each for each in context.cookies() if each["name"] == COOKIE]
        assert owners[-1] == owner_of(key["value"])
        assert (key["httpOnly"], key["sameSite"], key["secure"]) == (True, "Lax", False)
        context.close()
    first, again, other, other_again = owners
    assert (first, other) == (again, other_again)
    assert first != other
