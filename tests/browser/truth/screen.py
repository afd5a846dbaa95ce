"""What a page shows in the browser, read as a person would: tables, text, cells of pictures."""

from __future__ import annotations

import re
from dataclasses import dataclass

from playwright.sync_api import expect

from tests.browser.visiting import Visitor
from tests.served import wait_until

UNSEEN = dict.fromkeys(map(ord, "\u2060\u2068\u2069"))
"""Marks that only steer how text is set."""
NUMBER = re.compile(r"[−-]?\d[\d,]*(?:\.\d+)?(?:e−?\d+)?")


@dataclass(frozen=True)
class Claim:
    """One number that a page shows: what it says it is, as it is written, and what is true."""

    what: str
    shown: str
    true: float

    def fault(self) -> str:
        """Empty where the number is right: a whole number exactly, another to its last digit."""
        found = NUMBER.search(self.shown)
        if not found:
            return f"{self.what}: no number in {self.shown!r}"
        written = found[0].replace("−", "-").replace(",", "")
        digits = written.partition("e")[0].partition(".")[2]
        power = int(written.partition("e")[2] or 0)
        unit = 10.0 ** (power - len(digits))
        slack = 0.0 if isinstance(self.true, int) else 1.01 * unit
        if abs(float(written) - self.true) <= slack:
            return ""
        return f"{self.what}: the page shows {found[0]}, it is {self.true:.6g}"


def words(visitor: Visitor) -> str:
    """All text of the page."""
    return visitor.page.get_by_test_id("stMain").inner_text().translate(UNSEEN)


def said(visitor: Visitor, pattern: str) -> list[str]:
    """The groups of this pattern in the text of the page, once it is there."""
    wait_until(lambda: re.search(pattern, words(visitor)) is not None, pattern, 60)
    found = re.search(pattern, words(visitor))
    assert found is not None
    return list(found.groups())


def bars(visitor: Visitor) -> list[tuple[str, str]]:
    """The labels of a chart of bars and the numbers beside them."""
    wait_until(lambda: "\u2068" in visitor.page.get_by_test_id("stMain").inner_text(), "bars", 60)
    text = visitor.page.get_by_test_id("stMain").inner_text()
    return re.findall(r"\u2068(.*?)\u2069\s+([\d.]+)", text)


def rows(visitor: Visitor, nth: int = 0) -> list[list[str]]:
    """The cells of a table that is part of the page."""
    table = visitor.page.get_by_test_id("stTable").nth(nth)
    expect(table).to_be_visible()
    lines = table.locator("tr").all()
    cells = [[each.strip() for each in line.locator("td, th").all_inner_texts()] for line in lines]
    return [[cell for cell in line if cell] for line in cells]


def grid(visitor: Visitor, nth: int = 0) -> list[list[str]]:
    """The cells in sight of a table that can be sorted; its own headings are left out."""
    frame = visitor.page.get_by_test_id("stDataFrame").nth(nth)
    cells = frame.locator('[data-testid^="glide-cell-"]')
    cells.first.wait_for(state="attached")
    found: dict[int, dict[int, str]] = {}
    for cell in cells.all():
        column, row = map(int, str(cell.get_attribute("data-testid")).split("-")[2:])
        if row >= 0:
            found.setdefault(row, {})[column] = (cell.text_content() or "").translate(UNSEEN)
    return [[line[at] for at in sorted(line)] for _, line in sorted(found.items())]


def cell(visitor: Visitor, key: str, row: int, column: int) -> str:
    """What a picture says of one of its cells, walked to with the keys."""
    visitor.drawn(key)
    canvas = visitor.widget(key).locator("canvas").first
    sentence = visitor.widget(key).locator(".sentence").first
    canvas.focus()
    visitor.page.keyboard.press("Escape")
    for press in ["ArrowDown"] * (row + 1) + ["ArrowRight"] * column:
        visitor.page.keyboard.press(press)
    expect(sentence).to_contain_text(re.compile(r"\d"))
    return sentence.inner_text().translate(UNSEEN).rpartition(":")[2]
