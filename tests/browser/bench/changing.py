"""What a person does on the page that changes the pass, for the tests that do it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Position, expect

from tests.browser.visiting import Visitor

NOTHING = "Nothing is changed yet."
MODELS = {
    "ours": "model=shakespeare&text=To+be,+or+not",
    "published decoder": "model=gpt2&text=5+17+3+9+11",
    "published encoder": "model=bert&text=the+cat+is+[MASK]+and+good",
    "published encoder-decoder": "model=t5&text=hello+world",
}
EVERY_MODEL = pytest.mark.parametrize("asked", MODELS.values(), ids=MODELS.keys())
OURS_AND_PUBLISHED = pytest.mark.parametrize(
    "asked", list(MODELS.values())[:3], ids=list(MODELS)[:3]
)


def chances(visitor: Visitor) -> str:
    """What the bars before and after say."""
    drawn = visitor.widget("chances").locator("svg.marks").first
    drawn.wait_for(state="visible")
    return drawn.text_content() or ""


def chart(visitor: Visitor, key: str) -> str:
    """A chart as it is drawn."""
    drawn = visitor.widget(key).locator("svg.marks").first
    drawn.wait_for(state="visible")
    return drawn.inner_html()


def hold(visitor: Visitor, key: str, row: int, column: int) -> None:
    """Click a cell of the matrix under this key."""
    visitor.drawn(key)
    view = visitor.widget(key).locator("[data-cells]")
    left, top, *sizes = map(float, str(view.get_attribute("data-cells")).split())
    at = Position(x=left + (column + 0.5) * sizes[0], y=top + (row + 0.5) * sizes[-1])
    view.locator("canvas").click(position=at)
    visitor.asks(held=f"q{row}k{column}")
    visitor.rest()


def press(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_role("button", name=name, exact=True).click()
    visitor.rest()


def listed(visitor: Visitor, words: str, times: int = 1) -> None:
    """The list of edits has this one so many times."""
    expect(visitor.widget("edits_made").get_by_text(words)).to_have_count(times)


def edits(visitor: Visitor) -> str:
    return visitor.query().get("edits", "")
