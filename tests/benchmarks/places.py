"""Where benchmarks measure: a browser, running apps, and a bare Streamlit page beside them."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.browser import chromium
from tests.browser.visiting import Visitor
from tests.served import ROOT, Server

BARE = """
import streamlit as st

st.title("Bare")
head = st.segmented_control("Head", ["0", "1"], default="0", required=True, key="head")
for line in range(21):
    st.text(line)
st.container(key="shown").text(f"head {head}")
"""
"""A page that does nothing, of 24 elements."""


@contextmanager
def a_browser() -> Iterator[Browser]:
    path = chromium.ensure()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(chromium.FLAGS))
        yield browser
        browser.close()


@contextmanager
def an_app(
    script: Path = ROOT / "app.py", env: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """A server with a folder of runs of its own, which are gone afterwards; no run may fail.

    No model that was downloaded is in it, unless `env` says where they are.
    """
    here = {"EXPLORER_EXAMPLES": os.devnull, **(env or {})}
    with (
        tempfile.TemporaryDirectory(prefix="benchmark-", ignore_cleanup_errors=True) as folder,
        Server(Path(folder) / "runs", script=script, env=here) as server,
    ):
        yield server
        assert not server.tracebacks, server.tracebacks[0]


@contextmanager
def a_page_of(text: str) -> Iterator[Server]:
    """A Streamlit app of these few lines."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        script = Path(folder) / "page.py"
        script.write_text(text)
        with an_app(script) as server:
            yield server


@contextmanager
def a_visitor(browser: Browser, server: Server) -> Iterator[Visitor]:
    visitor = Visitor(browser, server.url)
    try:
        yield visitor
        visitor.no_traceback()
    finally:
        visitor.close()
