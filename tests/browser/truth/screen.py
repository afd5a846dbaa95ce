"""What a page shows in the browser, read as a person would: tables, text, cells of pictures."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import expect
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


def claims(true: Mapping[str, Any], shown: Iterable[str]) -> list[Claim]:
    """One of each name, in this order; a number without decimals is exact."""
    return [
        Claim(name, text, value if isinstance(value, int) else float(value))
        for (name, value), text in zip(true.items(), shown, strict=True)
    ]


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
    main = visitor.page.get_by_test_id("stMain")
    wait_until(lambda: "\u2068" in main.inner_text(), "bars", 60)
    return re.findall(r"\u2068(.*?)\u2069\s+([\d.]+)", main.inner_text())


CELLS = "all => all.map(table => [...table.rows].map(row => [...row.cells].map(c => c.TEXT)))"


def rows(visitor: Visitor, *texts: str, nth: int = 0) -> list[list[str]]:
    """The cells of the table that is part of the page and has these texts."""
    lines = _cells_of(visitor, "stTable", "innerText", texts, nth)
    return [[cell for cell in line if cell] for line in lines]


def grid(visitor: Visitor, *texts: str) -> list[list[str]]:
    """The cells in sight of the table that can be sorted and has these texts; no headings.

    Such a table tells a screen reader of new cells a while after it has them, so it is
    known by its texts and not by its place.
    """
    return _cells_of(visitor, "stDataFrame", "textContent", texts, 0)[1:]


def _cells_of(
    visitor: Visitor, kind: str, read: str, texts: tuple[str, ...], nth: int
) -> list[list[str]]:
    tables = visitor.page.locator(f"[data-testid={kind}] table")
    found: list[list[list[str]]] = []

    def are_there() -> bool:
        found.clear()
        for lines in tables.evaluate_all(CELLS.replace("TEXT", read)):
            lines = [[cell.translate(UNSEEN).strip() for cell in line] for line in lines]
            if set(texts) <= {cell for line in lines for cell in line}:
                found.append(lines)
        return len(found) > nth

    wait_until(are_there, f"a table with {texts}", 60)
    return found[nth]


def facts(visitor: Visitor, *names: str) -> dict[str, str]:
    """A table of names and values."""
    return {line[0]: line[1] for line in grid(visitor, "what", *names)}


def stated(visitor: Visitor, true: Mapping[str, Any]) -> list[Claim]:
    """What a table of names and values claims of these names."""
    return claims(true, map(facts(visitor, *true).__getitem__, true))


def listed(visitor: Visitor, true: Mapping[str, Any]) -> list[Claim]:
    """The same of a table that is part of the page."""
    return claims(true, map(dict(rows(visitor, *true)).__getitem__, true))


def painted(visitor: Visitor) -> None:
    """Wait for the frame after the next: what was asked for last is drawn by then."""
    visitor.page.evaluate(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def pointed_at(visitor: Visitor, key: str, row: int, column: int) -> str:
    """What a picture says of one of its cells."""
    sentence = visitor.point(key, row, column)
    painted(visitor)
    expect(sentence).not_to_be_empty()
    return sentence.inner_text().translate(UNSEEN)


def cells(
    visitor: Visitor, key: str, values: Tensor, *places: tuple[int, int], step: float | None = None
) -> list[Claim]:
    """What the picture of these values says of its cells; a `step` of 0 where no codes are sent."""
    step = step_of(values) if step is None else step
    made = []
    for row, column in places:
        shown = pointed_at(visitor, key, row, column).rpartition(":")[2]
        true = float(values[row, column])
        made.append(Claim(f"{key}: row {row}, column {column}", shown, true, step))
    return made


def board(visitor: Visitor, key: str) -> list[list[str]]:
    """A table that is a view of ours: the name of every row and its cells, without their heads."""
    visitor.drawn(key)
    read = """view => [...view.querySelectorAll("tbody tr")].map(row => [
      row.querySelector(".name").textContent,
      ...[...row.querySelectorAll("td")].map(cell => cell.textContent)])"""
    found: list[list[str]] = visitor.widget(key).locator(".board").evaluate(read)
    return [[cell.translate(UNSEEN) for cell in line] for line in found]


def nodes(visitor: Visitor, key: str) -> list[tuple[str, str, str]]:
    """The label and the number of every node of a tree, and what it says when pointed at."""
    visitor.drawn(key)
    read = """all => all.map(node => [node.querySelector(".label").textContent,
      node.querySelector(".number").textContent, node.getAttribute("aria-label")])"""
    found: list[list[str]] = visitor.widget(key).locator(".node").evaluate_all(read)
    return [(label, number, told.translate(UNSEEN)) for label, number, told in found]
