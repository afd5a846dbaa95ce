"""When a page was painted for the last time, by the browser's own record of its work.

The time runs from the start of the navigation, so reading the page and its code, unpacking the
data and drawing count. Beside it stands what follows the mark `HANDED`, where a page sets it
before the first line of script that gets the data: that leaves out reading a library's code.
Every page is opened in a browser of its own that has so far shown one line of text.
A page rests when what it is to draw is there and its script was idle for half a second; what
the browser still rasters after that is not counted, which can only flatter a slow page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page
from playwright.sync_api import TimeoutError as NotInTime

from tests.browser import chromium

NAVIGATION, HANDED = "navigationStart", "handed"
WORK = {"Paint", "Layerize", "Commit", "RasterTask", "DrawFrame", "Decode Image"}
CATEGORIES = [
    "blink.user_timing",
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
]
RESTS = """
{
  let quiet = 0, last = performance.now();
  const watch = setInterval(() => {
    const now = performance.now();
    quiet = now - last > 150 ? 0 : quiet + 1;
    last = now;
    if (quiet < 10 || document.readyState !== "complete") return;
    const drawn = document.querySelectorAll(SELECTOR).length;
    if (drawn < COUNT) { quiet = 0; return; }
    clearInterval(watch);
    console.log("at rest " + drawn);
  }, 50);
}
"""


@dataclass(frozen=True)
class Drawing:
    """A page on disk, and the elements (CSS) it has when it is drawn."""

    path: Path
    selector: str
    count: int = 1

    @property
    def size(self) -> int:
        return self.path.stat().st_size


@contextmanager
def context_of(browser: Browser) -> Iterator[BrowserContext]:
    """A browser of its own, of the same program, that has found its fonts."""
    program = browser.browser_type
    own = program.launch(executable_path=chromium.find(), args=list(chromium.FLAGS))
    try:
        context = own.new_context(viewport={"width": 1280, "height": 900})
        first = context.new_page()
        first.set_content("<p>text</p><code>code</code>")
        first.screenshot()
        first.close()
        yield context
    finally:
        own.close()


def until_rest(page: Page, drawing: Drawing, patience: float) -> bool:
    """Open it; whether it came to rest within so many seconds."""
    script = RESTS.replace("SELECTOR", json.dumps(drawing.selector))
    page.add_init_script(script.replace("COUNT", str(drawing.count)))
    try:
        with page.expect_console_message(
            lambda message: message.text.startswith("at rest"), timeout=patience * 1000
        ):
            page.goto(drawing.path.as_uri(), wait_until="commit", timeout=patience * 1000)
    except NotInTime:
        return False
    return True


@dataclass(frozen=True)
class Painted:
    """Seconds to the last paint, from the navigation and from the data handed over."""

    whole: float
    handed: float


def last_paint(context: BrowserContext, drawing: Drawing, patience: float = 60) -> Painted | None:
    """When it was painted for the last time; None where the page did not come to rest in time."""
    page, browser = context.new_page(), context.browser
    assert browser is not None
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    browser.start_tracing(page=page, categories=CATEGORIES)
    rested = until_rest(page, drawing, patience)
    assert not errors, errors
    if not rested:
        return None
    events = json.loads(browser.stop_tracing())["traceEvents"]
    return _last(events, drawing.path.as_uri())


def _last(events: list[dict[str, Any]], url: str) -> Painted:
    """The end of the last paint in the process of this page, after its navigation began."""
    opened = next(
        event
        for event in events
        if event["name"] == NAVIGATION
        and event["args"].get("data", {}).get("documentLoaderURL") == url
    )
    process = [
        event for event in events if event["pid"] == opened["pid"] and event["ts"] >= opened["ts"]
    ]
    last = max(event["ts"] + event.get("dur", 0) for event in process if event["name"] in WORK)
    handed = next((event for event in process if event["name"] == HANDED), opened)
    return Painted((last - opened["ts"]) / 1e6, (last - handed["ts"]) / 1e6)
