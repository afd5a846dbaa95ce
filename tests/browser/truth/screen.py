"""What a page shows in the browser, read as a person would: tables, text, cells of pictures."""

from __future__ import annotations

import re
from dataclasses import dataclass

from playwright.sync_api import Locator, expect
from torch import Tensor

from tests.browser.visiting import Visitor
from tests.served import wait_until

UNSEEN = dict.fromkeys(map(ord, "\u2060\u2068\u2069"))
"""Marks that only steer how text is set."""
NUMBER = re.compile(r"[−-]?\d[\d,]*(?:\.\d+)?(?:e−?\d+)?")


FLOAT = 2e-6
"""The pass is made in float32, and made again in float64: they differ by so much of a number."""
WHOLE_FROM = 100
"""Three digits are shown: a number from here on is rounded to a whole one, a smaller one never."""


@dataclass(frozen=True)
class Claim:
    """One number that a page shows: what it says it is, as it is written, and what is true.

    `step` is that of the codes it was sent in, 0 where it was sent as it is.
    """

    what: str
    shown: str
    true: float
    step: float = 0.0

    def fault(self) -> str:
        """Empty where the number is right: a whole number exactly, another to half its last digit.

        A number without decimals is exact, or a large one rounded.
        """
        found = NUMBER.search(self.shown)
        if not found:
            return f"{self.what}: no number in {self.shown!r}"
        written = found[0].replace("−", "-").replace(",", "")
        if abs(float(written) - self.true) <= self._slack(written):
            return ""
        return f"{self.what}: the page shows {found[0]}, it is {self.true:.6g}"

    def _slack(self, written: str) -> float:
        if isinstance(self.true, int):
            return 0.0
        digits = written.partition("e")[0].partition(".")[2]
        unit = 10.0 ** (int(written.partition("e")[2] or 0) - len(digits))
        rounded = bool(digits) or "e" in written or abs(self.true) >= WHOLE_FROM
        return (unit / 2 if rounded else 0.0) + self.step / 2 + FLOAT * abs(self.true)


def step_of(values: Tensor) -> float:
    """The step of the codes a picture of these is sent in: see explorer/components/wire.py."""
    known = values[values.isfinite()]
    least, most = float(known.min()), float(known.max())
    if least >= 0 and most <= 1 + 1e-6:
        return 1 / 10_000
    if least < 0 < most:
        return 2 * max(-least, most) / 65_000
    return (max(most, 0.0) - min(least, 0.0)) / 65_000


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
    read = "all => all.map(row => [...row.querySelectorAll('td, th')].map(cell => cell.innerText))"
    lines = [[cell.strip() for cell in row] for row in table.locator("tr").evaluate_all(read)]
    return [[cell for cell in line if cell] for line in lines]


def grid(visitor: Visitor, nth: int = 0) -> list[list[str]]:
    """The cells in sight of a table that can be sorted; its own headings are left out."""
    frame = visitor.page.get_by_test_id("stDataFrame").nth(nth)
    cells = frame.locator('[data-testid^="glide-cell-"]')
    cells.first.wait_for(state="attached")
    painted(visitor)
    read = "all => all.map(cell => [cell.dataset.testid, cell.textContent])"
    found: dict[int, dict[int, str]] = {}
    for name, text in cells.evaluate_all(read):
        column, row = map(int, name.split("-")[2:])
        if row >= 0:
            found.setdefault(row, {})[column] = text.translate(UNSEEN)
    return [[line[at] for at in sorted(line)] for _, line in sorted(found.items())]


MOST = 12
"""So many rows and columns at most have the pictures of which a cell can be chosen."""


def painted(visitor: Visitor) -> None:
    """Wait for the frame after the next: what the last key asked for is drawn by then."""
    visitor.page.evaluate(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def walked_to(visitor: Visitor, key: str, row: int, column: int, chooses: bool = False) -> Locator:
    """The sentence of a picture at one of its cells, walked to with the keys.

    Where one `chooses` a cell, the way begins at the one that is chosen, else before the first.
    """
    visitor.drawn(key)
    visitor.widget(key).locator("canvas").first.focus()
    visitor.page.keyboard.press("Escape")
    first = ["ArrowUp"] * MOST + ["ArrowLeft"] * MOST if chooses else ["ArrowDown"]
    for press in [*first, *["ArrowDown"] * row, *["ArrowRight"] * column]:
        visitor.page.keyboard.press(press)
    painted(visitor)
    return visitor.widget(key).locator(".sentence").first


def cell(visitor: Visitor, key: str, row: int, column: int, chooses: bool = False) -> str:
    """What a picture says of one of its cells."""
    sentence = walked_to(visitor, key, row, column, chooses)
    expect(sentence).to_contain_text(re.compile(r"\d"))
    return sentence.inner_text().translate(UNSEEN).rpartition(":")[2]


def board(visitor: Visitor, key: str) -> list[list[str]]:
    """A table that is a view of ours: the name of every row and its cells, without their heads."""
    visitor.drawn(key)
    read = """view => [...view.querySelectorAll("tbody tr")].map(row => [
      row.querySelector(".name").textContent,
      ...[...row.querySelectorAll("td")].map(cell => cell.textContent)])"""
    found: list[list[str]] = visitor.widget(key).locator(".board").evaluate(read)
    return [[cell.translate(UNSEEN) for cell in line] for line in found]


def notes(visitor: Visitor, key: str) -> list[str]:
    """What stands under the heads of such a table."""
    return visitor.widget(key).locator("thead .note").all_text_contents()


def nodes(visitor: Visitor, key: str) -> list[tuple[str, str, str]]:
    """The label and the number of every node of a tree, and what it says when pointed at."""
    visitor.drawn(key)
    read = """all => all.map(node => [node.querySelector(".label").textContent,
      node.querySelector(".number").textContent, node.getAttribute("aria-label")])"""
    found: list[list[str]] = visitor.widget(key).locator(".node").evaluate_all(read)
    return [(label, number, told.translate(UNSEEN)) for label, number, told in found]


def facts(visitor: Visitor, nth: int = 0) -> dict[str, str]:
    """A table of names and values."""
    return {line[0]: line[1] for line in grid(visitor, nth)}
