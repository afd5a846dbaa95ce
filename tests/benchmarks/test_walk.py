"""One step through the whole pass in the running app: from the key or click until it is painted.

A real browser, a model that ships with the app, the whole page: the step goes to the server,
the page's script runs there, the values of the stage are made, and the browser draws them.
As in `test_clicks`, the clicks on a bare Streamlit page tell how fast the machine is now.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

from explorer import library
from explorer.analysis.walk import stages_of
from tests.benchmarks.figure import milliseconds, quantile, report
from tests.benchmarks.test_clicks import BARE, BARE_P50, LISTEN, PAINTED, clicks_on_a_bare_page
from tests.browser.visiting import Visitor
from tests.served import Server

P50_BAR, P95_BAR = 0.150, 0.400
MODEL = "translation"
STACKS = ("encoder", "decoder")
BACK = 8
"""Forward by the space bar through every stage of both stacks, each for the first time, and
so many back by clicks."""
LISTEN_TO_KEYS = LISTEN.replace('"click"', '"keydown"')


def seconds_of_step(visitor: Visitor, at: int, by: int, count: int) -> float:
    """A step on with the space bar, or back by the button."""
    page, spine = visitor.page, visitor.widget("spine")
    visitor.widget("walk_values").locator("[data-painted]").first.evaluate(PAINTED)
    if by > 0:
        page.keyboard.press(" ")
    else:
        spine.get_by_role("button", name="Back", exact=True).click()
    painted: Any = page.evaluate("window.painted")
    expect(spine.locator(".where")).to_have_text(f"{at + by + 1} of {count}")
    visitor.rest()
    return float(painted) / 1000


def steps(browser: Browser, server: Server, stack: str) -> list[float]:
    """Seconds of every step through one stack, from its embedding to its end, and some back."""
    names = [stage.name for stage in stages_of(library.open_model(MODEL).config)]
    first = names.index(f"{stack}.embed")
    after = names.index("decoder.tokens") if stack == "encoder" else len(names)
    visitor = Visitor(browser, server.url)
    try:
        page = visitor.open(f"/walk?model={MODEL}&stage={stack}.embed")
        visitor.drawn("walk_values")
        page.evaluate(LISTEN)
        page.evaluate(LISTEN_TO_KEYS)
        on = range(first, after - 1)
        taken = [seconds_of_step(visitor, at, 1, len(names)) for at in on]
        back = range(after - 1, after - 1 - BACK, -1)
        taken += [seconds_of_step(visitor, at, -1, len(names)) for at in back]
        visitor.no_traceback()
        return taken
    finally:
        visitor.close()


def test_one_step_through_the_whole_pass(browser: Browser, tmp_path: Path) -> None:
    script = tmp_path / "bare.py"
    script.write_text(BARE)
    taken, bare = [], []
    with Server(tmp_path / "none", script=script) as nothing, Server(tmp_path / "runs") as server:
        for stack in STACKS:
            bare += clicks_on_a_bare_page(browser, nothing)
            taken += steps(browser, server, stack)
        assert not server.tracebacks
    p50, p95 = quantile(taken, 0.5), quantile(taken, 0.95)
    bare_p50 = quantile(bare, 0.5)
    slower = max(1.0, bare_p50 / BARE_P50)
    said = f", on a machine {slower:.1f} times slower than a free one" if slower > 1 else ""
    report(
        f"one step through the whole pass, key or click to paint, {len(taken)} steps",
        f"p50 {milliseconds(p50)}, p95 {milliseconds(p95)}, most {milliseconds(max(taken))}, "
        f"{p50 / bare_p50:.1f} ×{said}",
        f"p50 {milliseconds(bare_p50)} of a bare Streamlit page",
        f"p50 {milliseconds(P50_BAR)}, p95 {milliseconds(P95_BAR)}",
    )
    assert len(taken) >= 60
    assert p50 <= P50_BAR * slower
    assert p95 <= P95_BAR * slower
