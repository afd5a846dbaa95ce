"""A view taken away as one page: alive without a server, and nothing of it is markup or fetched."""

from pathlib import Path

import torch
from playwright.sync_api import Browser, expect

from explorer.analysis.thumbnails import thumbnails_of_weights
from explorer.components.grid import _VIEW as GRID
from explorer.components.grid import encode as encode_grid
from explorer.components.matrix import _VIEW as MATRIX
from explorer.components.matrix import encode as encode_matrix
from explorer.export import offline_page
from explorer.export.offline_page import OfflineView
from tests.browser.visiting import Notes, Visitor
from tests.components.samples import heads

LABELS = ["The", "<img src=x onerror=alert(1)>", "sat", "on"]
HEAD = "<i>mine</i> · Layer 1, head 2"
TITLE = "Layer 0 </title><script>alert(1)</script>"


WORDS = dict.fromkeys(("row", "column", "masked", "absent", "unit", "title"), "words") | {
    "sentence": "{row} attends to {column}: {value}"
}


def drawn() -> list[OfflineView]:
    weights, allowed = heads(2, 3, 4, 4), torch.ones(4, 4).tril().bool()
    one = encode_matrix(
        weights[1, 2], LABELS, LABELS, scale="sequential", allowed=allowed, words=WORDS
    )
    many = encode_grid(thumbnails_of_weights(weights), "layer", "head", name="overview")
    return [
        MATRIX.offline("head", one, 360, None, HEAD),
        GRID.offline("overview", many, 240, [1, 2]),
    ]


def test_it_is_alive_without_a_server_and_asks_nobody(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "taken.html"
    path.write_bytes(offline_page.offline_html(TITLE, {"sentence": "<b>$x$ & more"}, drawn()))
    visitor = Visitor(browser, "file://")
    page = visitor.page
    page.goto(path.as_uri())
    for kind in ("matrix", "grid"):
        expect(page.locator(f".{kind}[data-painted]")).to_be_visible()
    expect(page.get_by_text("<b>$x$ & more")).to_be_visible()
    expect(page.get_by_role("heading", name=TITLE)).to_be_visible()
    expect(page.locator("figcaption")).to_have_text([HEAD])
    page.locator(".matrix canvas").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".matrix .sentence")).to_contain_text("attends to")
    assert visitor.notes == Notes()
    visitor.close()
