"""Views as one page: stepped by keys, alive without a server, and nothing is fetched."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Locator, expect

from explorer.analysis.thumbnails import thumbnails_of_weights
from explorer.charts.figure_data import WINDOW, OfflinePicture, OfflineView
from explorer.components.matrix import _VIEW as MATRIX
from explorer.components.matrix import encode as encode_matrix
from explorer.components.picker import _VIEW as GRID
from explorer.components.picker import encode_grid
from explorer.export.kept_view import KeptView
from explorer.export.offline_page import offline_html
from explorer.export.session_page import session_html, size_of
from explorer.text.number_format import three
from tests.browser.visiting import Notes, Visitor, box_of
from tests.components.conftest import NOTE_WRITING
from tests.components.samples import heads

HARMFUL = "</script><img src=x onerror=alert(1)>"
WORDS = dict.fromkeys(("row", "column", "masked", "absent", "unit", "title"), "words") | {
    "sentence": "{row} attends to {column}: {value}",
    "corner": ["query ↓", "key →"],
}
WEIGHTS, ALLOWED = heads(2, 3, 4, 4), torch.ones(4, 4).tril().bool()
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="26"><text y="20">A</text></svg>'


def matrix(layer: int, head: int) -> OfflineView:
    labels = ["The", HARMFUL, "sat", "on"]
    data = encode_matrix(
        WEIGHTS[layer, head], labels, labels, scale="sequential", allowed=ALLOWED, words=WORDS
    )
    return MATRIX.offline("head", data, WINDOW, None, f"<i>Layer {layer}, head {head}</i>")


def session() -> list[KeptView]:
    many = encode_grid(thumbnails_of_weights(WEIGHTS), name="overview")
    grids = [GRID.offline("overview", many, 240, [layer, layer + 1]) for layer in (0, 1)]
    return [
        KeptView("First", "/attention?layer=0", HARMFUL, {}, [grids[0], matrix(0, 1)]),
        KeptView(
            HARMFUL, "/attention?text=<b>", "Say this.", {"sentence": HARMFUL}, [matrix(1, 2)]
        ),
        KeptView("Third", "/heads", "", {}, [grids[1], OfflinePicture("A chart", SVG)]),
        KeptView("Gone", "/masks"),
    ]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Visitor]:
    """The page, opened from disk in a browser whose network is cut."""
    path = tmp_path / "kept.html"
    path.write_bytes(session_html(f"My talk {HARMFUL}", session(), "http://app.example", "dark"))
    visitor = Visitor(browser, "file://", height=720)
    visitor.context.set_offline(True)
    visitor.page.goto(path.as_uri())
    yield visitor
    assert visitor.notes == Notes()
    visitor.close()


def step(visitor: Visitor, number: int) -> Locator:
    """The step of this number, once it is drawn; no other is shown."""
    shown = visitor.page.locator(".step:not([hidden]):not(.drawing)")
    expect(visitor.page.locator("#counter")).to_have_text(f"{number} / 4")
    expect(shown).to_have_count(1)
    assert visitor.page.url.endswith(f"#{number}")
    return shown


def test_keys_and_addresses_open_its_steps_in_dark_and_light(opened: Visitor) -> None:
    keys = opened.page.keyboard
    expect(step(opened, 1).locator(".matrix[data-painted]")).to_be_visible()
    pressed = "Space ArrowRight PageDown Space ArrowLeft Home End PageUp".split()
    for key, number in zip(pressed, (2, 3, 4, 4, 3, 1, 4, 3), strict=True):
        keys.press(key)
        step(opened, number)
    expect(step(opened, 3).locator("img")).to_be_visible()
    opened.page.get_by_role("button", name="Steps").click()
    opened.page.get_by_role("link", name="First").click()
    step(opened, 1)
    opened.page.goto(opened.page.url.replace("#1", "#3"))
    opened.page.reload()
    expect(step(opened, 3).get_by_role("heading")).to_have_text("Third")
    keys.press("End")
    expect(step(opened, 4)).to_contain_text("This view has no picture.")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert opened.page.evaluate(ground) == "rgb(17, 19, 23)", "as the app was"
    keys.press("d")
    step(opened, 4)
    assert opened.page.evaluate(ground) == "rgb(253, 253, 252)"


def test_what_is_under_the_edge_is_told(opened: Visitor) -> None:
    """With a key and with a button, until it has been seen."""
    page, more = opened.page, opened.page.get_by_role("button", name="More below")
    keys = page.keyboard
    page.set_viewport_size({"width": 1280, "height": 400})
    step(opened, 1)
    expect(more).to_be_visible()
    more.click()
    page.wait_for_function("document.querySelector('.step:not([hidden])').scrollTop > 0")
    step(opened, 1).evaluate("step => step.scrollTo(0, step.scrollHeight)")
    expect(more).to_be_hidden()
    keys.press("ArrowUp")
    expect(more).to_be_visible()
    keys.press("ArrowDown")
    expect(more).to_be_hidden()
    keys.press("End")
    step(opened, 4)
    expect(more).to_be_hidden()
    keys.press("o")
    expect(page.get_by_role("dialog")).to_contain_text("O opens this list")


def test_the_cells_of_eight_tokens_have_their_numbers(browser: Browser, tmp_path: Path) -> None:
    """As in the app, though the letters of another font are wider."""
    words = ["the", "black", "dog", "sees", "the", "red", "house", "</s>"]
    data = encode_matrix(torch.eye(8), words, words, scale="sequential", allowed=None, words=WORDS)
    head = MATRIX.offline("head", data, WINDOW, None, "Head")
    said = {"sentence": "the black dog"}
    view = KeptView("Eight", "/", "", said, [head, OfflinePicture("A", SVG)])
    path = tmp_path / "eight.html"
    path.write_bytes(session_html("Eight", [view]))
    visitor = Visitor(browser, "file://", height=720)
    visitor.page.add_init_script(NOTE_WRITING)
    visitor.page.goto(path.as_uri())
    expect(visitor.page.locator(".step:not(.drawing) .matrix[data-painted]")).to_be_visible()
    canvases = visitor.page.locator(".matrix canvas")
    written = canvases.evaluate_all("all => all.flatMap(each => each.texts ?? [])")
    assert [text for text, *_ in written].count("1.00") == 8
    visitor.close()


def test_words_are_no_markup(opened: Visitor) -> None:
    page = opened.page
    page.keyboard.press("s")
    expect(page.locator("#note")).to_have_text(HARMFUL)
    page.keyboard.press("Space")
    expect(step(opened, 2).get_by_role("heading")).to_have_text(HARMFUL)
    expect(step(opened, 2).locator("dd").first).to_have_text(HARMFUL)
    expect(page.locator("#note")).to_have_text("Say this.")
    expect(page.get_by_role("link", name="Open in the app")).to_have_attribute(
        "href", "http://app.example/attention?text=<b>"
    )
    page.keyboard.press("s")
    expect(page.locator("#note")).to_be_hidden()


def test_an_enlarged_view_says_the_number_pointed_at_until_escape(opened: Visitor) -> None:
    keys = opened.page.keyboard
    keys.press("Space")
    shown = step(opened, 2)
    line, canvas = shown.locator(".matrix .sentence"), shown.locator(".matrix canvas").first
    expect(line).to_have_text("words")
    assert line.evaluate("line => line.scrollWidth <= line.clientWidth"), "the whole line"
    zoom = float(shown.locator(".figures").evaluate("place => place.style.zoom"))
    assert zoom > 1.4
    cells = str(shown.locator("[data-cells]").get_attribute("data-cells"))
    left, top, wide, high = map(float, cells.split())
    box = box_of(canvas)
    middle = zoom * (left + 2.5 * wide), zoom * (top + 2.5 * high)
    opened.page.mouse.move(box["x"] + middle[0], box["y"] + middle[1])
    expect(line).to_have_text(f"sat attends to sat: {three(float(WEIGHTS[1, 2, 2, 2]))}")
    canvas.focus()
    keys.press("ArrowRight")
    expect(line).to_contain_text("attends to")
    step(opened, 2)
    keys.press("Escape")
    keys.press("ArrowRight")
    step(opened, 3)


def test_a_view_is_as_it_was_kept_whatever_stands_in_the_others(opened: Visitor) -> None:
    """Both grids are called alike; each has its own choice."""
    keys, words = opened.page.keyboard, ".grid .sentence"
    expect(step(opened, 1).locator(words)).to_contain_text("layer 0, head 1")
    keys.press("End")
    keys.press("ArrowLeft")
    expect(step(opened, 3).locator(words)).to_contain_text("layer 1, head 2")
    keys.press("Home")
    expect(step(opened, 1).locator(words)).to_contain_text("layer 0, head 1")


def test_a_view_alone_is_alive_and_its_words_are_text(browser: Browser, tmp_path: Path) -> None:
    title = "Layer 0 </title><script>alert(1)</script>"
    path = tmp_path / "taken.html"
    path.write_bytes(offline_html(title, {"sentence": "<b>$x$ & more"}, session()[0].pictures))
    visitor = Visitor(browser, "file://")
    page = visitor.page
    page.goto(path.as_uri())
    for kind in ("matrix", "grid"):
        expect(page.locator(f".{kind}[data-painted]")).to_be_visible()
    expect(page.get_by_text("<b>$x$ & more")).to_be_visible()
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.locator("figcaption")).to_have_text(["<i>Layer 0, head 1</i>"])
    page.locator(".matrix canvas").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".matrix .sentence")).to_contain_text("attends to")
    assert visitor.notes == Notes()
    visitor.close()


def test_its_size_is_known_before_it_is_written() -> None:
    views = session()
    written = len(session_html("My talk", views)) - len(session_html("My talk", []))
    assert size_of(views) == pytest.approx(written, rel=0.1)
