"""How much of the window the figures of a page have."""

from pathlib import Path

from explorer.app.page_table import ROWS
from explorer.lessons.lesson import FIRST_PAGE
from tests.browser.visiting import Visitor
from tests.served import wait_until

FIGURES = Path(__file__).with_name("figures.js").read_text("utf-8")
TABLES = {"lessons", "tokens", "tokenizer_training", "administration"}
"""Their tables and chips are as high as their words."""
OF_RUNS = {"runs", "training_history", "inside_training"}
"""Show nothing where there is no run."""
WITH_FIGURE = ROWS.keys() - TABLES - OF_RUNS
CHOSEN = {"circuits": "model=induction", "checkpoints": "model=translation&show=Parameters"}
"""What has a figure on these pages; on others it is the model that comes with the app."""
TOP, COVER = 190, 0.55
"""Pixels above the first figure, and the share of the page that figures cover."""
TOP_ON_PHONE, PHONE = 300, 400
TOP_PRESENTED, COVER_PRESENTED = 220, 0.7


def address_of(page: str) -> str:
    place = page.replace(FIRST_PAGE, "")
    return f"/{place}?{CHOSEN.get(page, 'model=translation')}"


def too_small(visitor: Visitor, presents: bool = False) -> list[str]:
    """What the figures of this page lack, once there is one and the page is at rest."""
    wait_until(lambda: visitor.page.evaluate(FIGURES)[0] < 2_000, f"a figure on {visitor.page.url}")
    visitor.settled()
    return lacking(visitor, presents)


def lacking(visitor: Visitor, presents: bool = False) -> list[str]:
    """What the figures lack as they stand: a place high up, or their room."""
    top, cover, fills = visitor.page.evaluate(FIGURES)
    is_phone = visitor.page.evaluate("innerWidth") < PHONE
    most = TOP_ON_PHONE if is_phone else TOP_PRESENTED if presents else TOP
    faults = [f"the first figure begins at {top:.0f} px"] if top > most else []
    if cover < (COVER_PRESENTED if presents else COVER) and not fills:
        faults += [f"the figures cover {cover:.2f} of the page"]
    return faults
