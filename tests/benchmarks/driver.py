"""What drives the running app where it is measured: servers, browsers, readers without one.

A click is timed from the browser's own time stamp of it until the answer is painted. A reader
without a browser sends and takes what a page in a browser does (`tests/reader.py`).
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Locator, sync_playwright

from explorer.catalog.pretrained_models import FIRST
from tests.benchmarks.measuring import NotMeasured
from tests.browser import chromium
from tests.browser.visiting import Visitor
from tests.reader import Answer, Reader
from tests.served import ROOT, Server
from tests.smollm2 import folder_with_smollm2

BARE = """
import streamlit as st

st.title("Bare")
head = st.segmented_control("Head", ["0", "1"], default="0", required=True, key="head")
for line in range(21):
    st.text(line)
st.container(key="shown").text(f"head {head}")
"""
"""A page that does nothing, of 24 elements."""
WORDS = "black white big small".split()
CHANGES, SETTLING, ANSWERS = 8, 2, 20
"""Seconds for the first answer of everybody, who all ask for it at once."""
MEGABYTE = 1e6


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


def models_with_smollm2() -> Path:
    """Fetched once for a machine; NotMeasured where it cannot be."""
    try:
        return folder_with_smollm2()
    except pytest.skip.Exception as reason:
        raise NotMeasured(str(reason)) from reason


def an_app_with_smollm2() -> AbstractContextManager[Server]:
    return an_app(env={"EXPLORER_EXAMPLES": str(models_with_smollm2())})


@contextmanager
def a_browser() -> Iterator[Browser]:
    path = chromium.ensure()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(chromium.FLAGS))
        yield browser
        browser.close()


@contextmanager
def a_visitor(browser: Browser, server: Server) -> Iterator[Visitor]:
    visitor = Visitor(browser, server.url)
    try:
        yield visitor
        visitor.no_traceback()
    finally:
        visitor.close()


@contextmanager
def visiting(
    an_app: Callable[[], AbstractContextManager[Server]] = an_app,
) -> Iterator[tuple[Visitor, Server]]:
    """Somebody with a browser of their own at an app of their own."""
    with an_app() as server, a_browser() as browser, a_visitor(browser, server) as visitor:
        yield visitor, server


LISTEN = """() => {
  window.begun = 0;
  const note = event => { window.begun = event.timeStamp; };
  for (const kind of ["click", "keydown"]) addEventListener(kind, note, {capture: true});
}"""
ANSWERED = """(elements, observed) => {
  const changed = element => new Promise(done => new MutationObserver((_, watching) => {
    if (element.dataset.testScriptState && element.dataset.testScriptState !== "notRunning") return;
    watching.disconnect();
    done();
  }).observe(element, observed));
  window.answered = Promise.all(elements.map(changed)).then(() => new Promise(done => {
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - window.begun)));
  }));
}"""
"""From the event's own time stamp to the first task after the frame in which the last is new."""
PAINTED = {"attributes": True, "attributeFilter": ["data-painted"]}
ANOTHER = {"attributes": True, "attributeFilter": ["data-head"]}
CHANGED = {"childList": True, "characterData": True, "subtree": True}
RESTED = {"attributes": True, "attributeFilter": ["data-test-script-state"]}


def seconds_of(act: Callable[[], object], shown: Locator, observed: Mapping[str, object]) -> float:
    """From the act until all these elements have changed and are painted."""
    shown.evaluate_all(ANSWERED, observed)
    act()
    taken: float = shown.page.evaluate("window.answered")
    return taken / 1000


async def ask(reader: Reader) -> Answer:
    answer = await reader.act()
    assert not answer.failures, answer.failures[0]
    return answer


@asynccontextmanager
async def readers_of(
    url: str, page: str, count: int, query: str = ""
) -> AsyncIterator[list[Reader]]:
    """So many, each with a websocket of their own, who have seen the page."""
    readers = [Reader(url, page=page, query=query) for _ in range(count)]
    try:
        for reader in readers:
            await reader.open()
            await ask(reader)
        yield readers
    finally:
        for reader in readers:
            await reader.close()


Acts = Callable[[Reader, int], Awaitable[Answer]]


async def another_head(reader: Reader, turn: int) -> Answer:
    return await reader.pick_head((turn + 1) % 2)


async def whole_page(reader: Reader, turn: int) -> Answer:
    """Type a sentence, follow a link to another page, and another back."""
    if turn % 3 == 0:
        return await reader.type(f"the {WORDS[turn % len(WORDS)]} cat sees the dog")
    return await reader.turn_to("tokens" if turn % 3 == 1 else "")


async def crowd_of(readers: list[Reader], act: Acts = another_head) -> list[float]:
    """Seconds of every answer to those who do this once a second, spread over the second."""
    begin = asyncio.get_running_loop().time() + SETTLING
    places = (begin + place / len(readers) for place in range(len(readers)))
    lived = await asyncio.gather(*map(partial(living, act), readers, places))
    return [seconds for one in lived for seconds in one]


async def living(act: Acts, reader: Reader, begin: float) -> list[float]:
    """Once a second, and wait for every answer, which must not be the one before."""
    now, taken, seen = asyncio.get_running_loop().time, [], (await act(reader, -1)).picture()
    for turn in range(CHANGES):
        await asyncio.sleep(max(0.0, begin + turn - now()))
        answer = await act(reader, turn)
        assert not answer.failures, answer.failures[0]
        assert answer.picture() != seen or act is whole_page, "the picture did not change"
        seen = answer.picture()
        taken.append(answer.seconds)
    return taken


def core_seconds(server: Server, page: str) -> list[float]:
    """What one answer costs the server on a core, one reader changing heads alone."""
    return [asyncio.run(_core_seconds(server, page))]


async def _core_seconds(server: Server, page: str) -> float:
    process = psutil.Process(server.pid)
    async with readers_of(server.url, page, 1) as (reader,):
        before = seconds_on_a_core(process)
        for turn in range(ANSWERS):
            await reader.pick_head((turn + 1) % 2)
        return (seconds_on_a_core(process) - before) / ANSWERS


def seconds_on_a_core(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def megabytes_of(server: Server) -> float:
    """What the server process holds once what its answers left behind is freed."""
    await asyncio.sleep(1)
    return float(psutil.Process(server.pid).memory_info().rss) / MEGABYTE


def address(text: str) -> str:
    """The first picture of SmolLM2 with this sentence."""
    return f"/?model={FIRST}&text={text.replace(' ', '+')}"
