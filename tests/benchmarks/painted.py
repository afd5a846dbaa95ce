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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route
from playwright.sync_api import TimeoutError as NotInTime

from tests.benchmarks.drawings import HANDED, Drawing
from tests.benchmarks.places import a_browser

NAVIGATION = "navigationStart"
WORK = {"Paint", "Layerize", "Commit", "RasterTask", "DrawFrame", "Decode Image"}
CATEGORIES = [
    "blink.user_timing",
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
]
RESTS = """([selector, count]) => {
  const now = performance.now(), held = window.held ??= {quiet: 0, last: now};
  held.quiet = now - held.last > 150 ? 0 : held.quiet + 1;
  held.last = now;
  if (document.querySelectorAll(selector).length < count) held.quiet = 0;
  return held.quiet >= 10 && document.readyState === "complete";
}"""


@contextmanager
def new_page() -> Iterator[tuple[Browser, Page]]:
    """In a browser of its own that has found its fonts."""
    with a_browser() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        first = context.new_page()
        first.set_content("<p>text</p><code>code</code>")
        first.screenshot()
        first.close()
        yield browser, context.new_page()


def open_until_rest(page: Page, drawing: Drawing, patience: float = 60) -> None:
    """NotInTime where it does not come to rest within so many seconds."""
    page.goto(drawing.path.as_uri(), wait_until="commit", timeout=1000 * patience)
    drawn = [drawing.selector, drawing.count]
    page.wait_for_function(RESTS, arg=drawn, polling=50, timeout=1000 * patience)


def last_paint(
    drawing: Drawing, scripts: Mapping[str, Path] | None = None, patience: float = 60
) -> list[float]:
    """Seconds to the last paint, from the navigation and from the data handed over; or none.

    What the page fetches is answered with these scripts; it may ask for nothing else.
    """
    others, errors = list[str](), list[str]()

    def answer(route: Route) -> None:
        path = (scripts or {}).get(route.request.url.rpartition("/")[2])
        if path:
            route.fulfill(path=path)
        else:
            others.append(route.request.url)
            route.abort()

    with new_page() as (browser, page):
        page.context.route(lambda url: url.startswith("http"), answer)
        page.on("pageerror", lambda error: errors.append(str(error)))
        browser.start_tracing(page=page, categories=CATEGORIES)
        try:
            open_until_rest(page, drawing, patience)
        except NotInTime:
            return []
        finally:
            assert not others + errors, others + errors
        return _last(json.loads(browser.stop_tracing())["traceEvents"], drawing.path.as_uri())


def _last(events: list[dict[str, Any]], url: str) -> list[float]:
    """The end of the last paint in the process of this page, after its navigation began."""
    (opened,) = (
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
    return [(last - begun["ts"]) / 1e6 for begun in (opened, handed)]
