"""Where the parts of a circuit stand in its picture, and what its card says of them."""

import json
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator

from tests.browser.visiting import DRAWN_ANEW, Visitor
from tests.whole_numbers import UNSEEN


@dataclass(frozen=True)
class Drawn:
    """The picture as it stands on the page."""

    visitor: Visitor

    @property
    def view(self) -> Locator:
        return self.visitor.widget("circuit_map").locator(".circuit-map")

    @property
    def canvas(self) -> Locator:
        return self.view.locator("canvas")

    def items(self) -> dict[str, dict[str, Any]]:
        """By name and position: where what is drawn stands; "port" before what reads k or v."""
        return {
            f"{'port ' if each['key'].startswith('port') else ''}{each['title']}@{each['at']}": each
            for each in json.loads(self.view.get_attribute("data-place") or "")
        }

    def point(self, name: str) -> str:
        """What the card says of it."""
        item = self.items()[name]
        self.canvas.hover(position={"x": item["x"], "y": item["y"]})
        self.visitor.page.evaluate(DRAWN_ANEW)
        return self.card()

    def click(self, name: str) -> None:
        self.point(name)
        self.visitor.page.mouse.down()
        self.visitor.page.mouse.up()

    def card(self) -> str:
        return " ".join(self.view.locator(".card").inner_text().translate(UNSEEN).split())
