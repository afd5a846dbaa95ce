"""What pointing at a picture costs: script per event, counted by the page itself."""

from __future__ import annotations

from collections.abc import Iterable

from playwright.sync_api import Page, expect

WATCH = """() => {
  let begun = 0;
  window.hovers = [];
  addEventListener("pointermove", () => { begun = performance.now(); }, {capture: true});
  addEventListener("pointermove", () => { window.hovers.push(performance.now() - begun); });
}"""


def hover(page: Page, kind: str, cells: Iterable[tuple[int, int]]) -> list[float]:
    """Seconds of script for the pointer on each cell (row, column); each must be answered.

    The first listener of the window is called before those of the view, the last after them.
    """
    view = page.locator(f".view.{kind}")
    box = view.locator("canvas").bounding_box()
    left, top, wide, *high = map(float, str(view.get_attribute("data-cells")).split())
    assert box is not None
    sentence, said = view.locator(".sentence"), ""
    page.mouse.move(box["x"] + 1, box["y"] + 1)
    page.evaluate(WATCH)
    for row, column in cells:
        x, y = left + (column + 0.4) * wide, top + (row + 0.4) * (high or [wide])[0]
        page.mouse.move(box["x"] + x, box["y"] + y)
        expect(sentence).not_to_have_text(said)
        said = str(sentence.text_content())
    milliseconds: list[float] = page.evaluate("window.hovers")
    return [each / 1000 for each in milliseconds]
