"""One step of learning on a megabyte: the page's script, and from the key until the page rests.

A real browser and the whole page with a file of a megabyte and a thousand rules: the arrow key
goes to the server, the step is counted, its tables, the excerpt and the sentence are made and
sent, and the browser draws them. As in `test_clicks`, a bare Streamlit page tells how fast the
machine is now. What the server needs for a step is held; the browser's share, which is mostly
Streamlit's and the machine's, is reported.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, FilePayload, expect
from streamlit.testing.v1 import AppTest

from explorer.bench.learning_source import FILE
from tests import apps
from tests.benchmarks.figure import milliseconds, quantile, report
from tests.benchmarks.test_clicks import BARE, clicks_on_a_bare_page
from tests.benchmarks.test_learning import RULES, TEXTS
from tests.browser.visiting import Visitor
from tests.served import Server

STEP_BAR, RUNS = 0.100, 4
BARE_RUN = 0.006
"""Seconds of the bare page's script, p50, while nobody else uses the machine."""
SLOWEST = 2.0
"""No machine is so much slower that the bar would be later still."""
STEPS = 10
"""Of the first rules, and as many of the last."""

LISTEN = """() => {
  window.pressed = 0;
  addEventListener("keydown", event => { window.pressed = event.timeStamp; }, {capture: true});
}"""
RESTED = """app => {
  window.rested = new Promise(done => new MutationObserver((_, watching) => {
    if (app.dataset.testScriptState !== "notRunning") return;
    watching.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - window.pressed)));
  }).observe(app, {attributes: true, attributeFilter: ["data-test-script-state"]}));
}"""
"""From the key's own time stamp to the first task after the frame with everything drawn."""


def seconds_of_step(visitor: Visitor, at: int, by: int) -> float:
    """A step on or back with the arrow keys."""
    page = visitor.page
    page.get_by_test_id("stApp").evaluate(RESTED)
    page.keyboard.press("ArrowRight" if by > 0 else "ArrowLeft")
    rested = float(page.evaluate("window.rested")) / 1000
    expect(page.get_by_text(f"Rules: {at + by:,} of {RULES:,}")).to_be_visible()
    visitor.rest()
    return rested


def steps(browser: Browser, server: Server, text: str) -> list[float]:
    """Seconds of every step: the first rules, then back from the last."""
    visitor = Visitor(browser, server.url)
    try:
        page = visitor.open("/learning?" + urlencode({"learn_from": FILE, "learn_rules": RULES}))
        mine = FilePayload(name="mine.txt", mimeType="text/plain", buffer=text.encode())
        page.locator("input[type=file]").set_input_files(mine)
        expect(page.get_by_text(f"Rules: 0 of {RULES:,}")).to_be_visible()
        visitor.rest()
        page.evaluate(LISTEN)
        page.get_by_role("heading", level=1).click()
        taken = [seconds_of_step(visitor, at, 1) for at in range(STEPS)]
        page.get_by_role("slider").first.press("End")
        expect(page.get_by_text(f"Rules: {RULES:,} of {RULES:,}")).to_be_visible()
        visitor.rest()
        page.get_by_role("heading", level=1).click()
        taken += [seconds_of_step(visitor, RULES - at, -1) for at in range(STEPS)]
        visitor.no_traceback()
        return taken
    finally:
        visitor.close()


def seconds_of_run(at: AppTest, step: int) -> float:
    begun = time.perf_counter()
    at.session_state["learn_step"] = step
    at.run()
    taken = time.perf_counter() - begun
    assert not at.exception
    assert at.slider(key="learn_step").label == f"Rules: {step:,} of {RULES:,}"
    return taken


def seconds_of_a_bare_run(at: AppTest, turn: int) -> float:
    begun = time.perf_counter()
    at.segmented_control[0].set_value(str(turn % 2)).run()
    taken = time.perf_counter() - begun
    assert at.text[-1].value == f"head {turn % 2}"
    return taken


@pytest.mark.parametrize("name", TEXTS)
def test_the_script_of_one_step(name: str) -> None:
    """The whole page anew by the wall clock, more than the fragment that a step draws.

    Of each step the fastest of some runs counts: in the others a neighbour had the core.
    """
    text = TEXTS[name]()
    at = apps.page("look/learning", learn_from=FILE, learn_rules=str(RULES))
    at.file_uploader(key="learn_file").upload("mine.txt", text.encode()).run()
    bare_page, spent, bare = AppTest.from_string(BARE).run(), [], []
    for turn, step in enumerate(jumps(RULES)):
        spent.append(min(seconds_of_run(at, step) for _ in range(RUNS)))
        bare.append(min(seconds_of_a_bare_run(bare_page, turn) for _ in range(RUNS)))
    slowest, bare_p50 = max(spent), quantile(bare, 0.5)
    slower = min(max(1.0, bare_p50 / BARE_RUN), SLOWEST)
    report(
        f"the script of a step of learning, {len(text) / 1e6:.1f} MB ({name}), {len(spent)} steps",
        f"p50 {milliseconds(quantile(spent, 0.5))}, slowest {milliseconds(slowest)}",
        f"p50 {1000 * bare_p50:.1f} ms of a bare page's script, "
        f"on a machine {slower:.1f} times slower than a free one",
        f"{milliseconds(STEP_BAR)} every step",
    )
    assert slowest <= STEP_BAR * slower


def jumps(last: int) -> Iterator[int]:
    """The longest jump first; forward, back, and anywhere."""
    yield last
    yield from range(0, last + 1, 43)
    yield from range(last, -1, -47)
    yield from random.Random(3).choices(range(last + 1), k=30)


def test_one_step_of_the_page(browser: Browser, tmp_path: Path) -> None:
    script = tmp_path / "bare.py"
    script.write_text(BARE)
    taken, bare = [], []
    with Server(tmp_path / "none", script=script) as nothing, Server(tmp_path / "runs") as server:
        for make in TEXTS.values():
            bare += clicks_on_a_bare_page(browser, nothing)
            taken += steps(browser, server, make())
        assert not server.tracebacks
    p50, bare_p50 = quantile(taken, 0.5), quantile(bare, 0.5)
    report(
        f"one step of learning in the running app, key to rest, {len(taken)} steps",
        f"p50 {milliseconds(p50)}, p95 {milliseconds(quantile(taken, 0.95))}, "
        f"most {milliseconds(max(taken))}, {p50 / bare_p50:.1f} ×",
        f"p50 {milliseconds(bare_p50)} of a bare Streamlit page",
        "none: reported",
    )
