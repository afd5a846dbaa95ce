"""A view taken away as one page: alive without a server, and nothing of it is markup or fetched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from explorer.analysis.thumbnails import of_weights
from explorer.components import offline
from explorer.components.grid import _VIEW as GRID
from explorer.components.grid import encode as encode_grid
from explorer.components.matrix import _VIEW as MATRIX
from explorer.components.matrix import encode as encode_matrix
from explorer.components.mounting import Drawn
from tests.components.samples import heads

LABELS = ["The", "<img src=x onerror=alert(1)>", "sat", "on"]
TITLE = "Layer 0 </title><script>alert(1)</script>"


WORDS = dict.fromkeys(("row", "column", "forbidden", "absent", "unit", "title"), "words") | {
    "sentence": "{row} attends to {column}: {value}"
}


def drawn() -> list[Drawn]:
    weights, allowed = heads(2, 3, 4, 4), torch.ones(4, 4).tril().bool()
    one = encode_matrix(
        weights[1, 2], LABELS, LABELS, scale="sequential", allowed=allowed, words=WORDS
    )
    many = encode_grid(of_weights(weights), "layer", "head", name="overview")
    return [MATRIX.drawn("head", one, 360, None), GRID.drawn("overview", many, 240, [1, 2])]


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    path = tmp_path / "taken.html"
    path.write_bytes(offline.page(TITLE, {"sentence": "<b>$x$ & more"}, drawn()))
    context = browser.new_context(viewport={"width": 1000, "height": 900}, offline=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    yield page
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert not errors
    context.close()


def test_hovering_is_alive(page: Page) -> None:
    for kind in ("matrix", "grid"):
        expect(page.locator(f".{kind}[data-painted]")).to_be_visible()
    expect(page.get_by_text("<b>$x$ & more")).to_be_visible()
    expect(page.get_by_role("heading", name=TITLE)).to_be_visible()
    sentence = page.locator(".matrix .sentence")
    before = sentence.text_content()
    page.locator(".matrix canvas").focus()
    page.keyboard.press("ArrowDown")
    expect(sentence).not_to_have_text(str(before))
    expect(sentence).to_contain_text("attends to")
