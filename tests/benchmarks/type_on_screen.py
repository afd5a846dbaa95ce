"""Type on a projector: the smallest that carries meaning, on all pages in presenter mode."""

from collections.abc import Iterator

from tests.benchmarks.measuring import Row
from tests.benchmarks.places import a_browser, an_app
from tests.browser.type_sizes import PAGES, go_presenting, note_canvas_type, written_on
from tests.browser.visiting import Visitor

GOAL = 18
"""CSS pixels of a screen of 1280 × 720."""


def smallest() -> Iterator[Row]:
    """Texts of the page, of its charts, and what is written on a canvas."""
    with an_app() as server, a_browser() as browser:
        visitor = Visitor(browser, server.url, width=1280, height=720)
        note_canvas_type(visitor.context)
        visitor.open("/lessons?present=true")
        found = {}
        for page in PAGES:
            go_presenting(visitor, page)
            found[page] = written_on(visitor.page)[0]
        visitor.close()
    page = min(found, key=lambda page: found[page].pixels)
    size = found[page].pixels
    yield Row(
        f"presenter mode: the smallest type of {len(found)} pages at 1280 × 720",
        f"{size:.1f} px, “{found[page].text}” on {page}",
        f"{GOAL} px of a goal",
        size / GOAL,
        "≥ 1",
        size >= GOAL,
    )
