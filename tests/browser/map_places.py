"""Where things stand in the picture of the pass, and what it says of them."""

import json
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator

from tests.browser.visiting import DRAWN_ANEW, Visitor, box_of
from tests.whole_numbers import UNSEEN

IN_LAYER = {"self_attn": 0.26, "cross_attn": 0.5}
"""How high in its layer an edge arrives."""
Point = tuple[float, float]


@dataclass(frozen=True)
class Drawn:
    """The picture under a key; stacks are counted as they stand, tokens and layers from zero."""

    visitor: Visitor
    key: str = "pass_map"

    @property
    def view(self) -> Locator:
        return self.visitor.widget(self.key).locator(".pass-map")

    @property
    def canvas(self) -> Locator:
        return self.view.locator(".stage > canvas")

    @property
    def sentence(self) -> Locator:
        return self.view.locator(".sentence").first

    def said(self) -> str:
        """What it says now."""
        return self.sentence.inner_text().translate(UNSEEN)

    def notes(self) -> str:
        """How many edges it draws, of how many."""
        return self.view.locator(".notes").inner_text().translate(UNSEEN)

    def point(self, at: Point) -> str:
        """Point there; what it says then."""
        box = box_of(self.canvas)
        self.visitor.page.mouse.move(box["x"] + at[0], box["y"] + at[1])
        self.visitor.page.evaluate(DRAWN_ANEW)
        return self.said()

    def click(self, at: Point) -> str:
        """Click there; what it says then."""
        self.point(at)
        self.visitor.page.mouse.down()
        self.visitor.page.mouse.up()
        self.visitor.page.evaluate(DRAWN_ANEW)
        return self.said()

    def column(self, stack: int, token: int) -> float:
        place = self._place()
        return float(place["stacks"][stack]["x"] + token * place["column"])

    def token(self, stack: int, token: int) -> Point:
        return self.column(stack, token), self._place()["floor"] + 12

    def answer(self, token: int) -> Point:
        """Above the last stack."""
        place = self._place()
        return self.column(len(place["stacks"]) - 1, token), place["ceiling"] - 12

    def level(self, stack: int, level: float) -> float:
        """Of the residual stream before layer 0, 1, …; in between of what is in a layer."""
        levels = self._place()["stacks"][stack]["levels"]
        layer = min(int(level), len(levels) - 2)
        share = level - layer
        return float(levels[layer] + share * (levels[layer + 1] - levels[layer]))

    def node(self, stack: int, layer: int, token: int) -> Point:
        """Where no edge is: an edge arrives below, and the next one leaves above."""
        return self.column(stack, token), self.level(stack, layer + 0.85)

    def layer(self, stack: int, layer: int) -> Point:
        """Its name, left of the columns."""
        left = self.column(stack, 0) - self._place()["column"] / 2
        return left - 4, self.level(stack, layer + 0.5)

    def edge(self, part: str, stack: int, layer: int, query: int, from_: Point) -> Point:
        """The middle of its level part: `from_` is the stack and the token of its key."""
        x0, x1 = self.column(*map(int, from_)), self.column(stack, query)
        return (x0 + 0.12 * (x1 - x0) + x1) / 2, self.level(stack, layer + IN_LAYER[part])

    def _place(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.view.get_attribute("data-place") or "{}")
        assert found, "nothing is drawn"
        return found
