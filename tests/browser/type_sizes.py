"""How large the type of a page is on the screen: its texts, its charts, and what canvases write."""

from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

from tests.served import ROOT

HERE = Path(__file__).parent
PAGES = sorted({path.stem for path in (ROOT / "pages").glob("*/[a-z]*.py")} - {"administration"})


@dataclass(frozen=True)
class Written:
    """A text with its size on the screen in CSS pixels, and the key of what it is part of."""

    pixels: float
    text: str
    key: str


def note_canvas_type(context: BrowserContext) -> None:
    """Before any page of it is opened."""
    context.add_init_script(path=HERE / "canvas_type.js")


def written_on(page: Page) -> list[Written]:
    """All that is written on the page, the smallest first."""
    script = (HERE / "type_sizes.js").read_text("utf-8")
    return [Written(float(size), text, key) for size, text, key in page.evaluate(script)]
