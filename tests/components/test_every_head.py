"""Another head is drawn by the browser, exactly as the server would send it, and told once."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from explorer.components import wire
from explorer.components.matrix import encode
from explorer.text.number_format import three
from tests.browser.visiting import AT_REST, SlowLine, Visitor
from tests.components.conftest import OpenDemo, open_in, told
from tests.components.samples import heads
from tests.served import Server, wait_until

NOTE_HEADS = """() => {
  window.handed = {};
  const text = bytes => btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(""));
  document.addEventListener("explorer-head", ({detail}) => {
    const planes = Object.entries(detail.planes).map(([name, bytes]) => [name, text(bytes)]);
    window.handed[detail.at.join()] = Object.fromEntries(planes);
  });
}"""
NOTE_SHOWN = """() => {
  window.shown = [];
  const inside = each => each.shadowRoot ? find(each.shadowRoot) : [];
  const find = root => [...root.querySelectorAll("*")].flatMap(
    each => each.matches(".view.matrix") ? [each] : inside(each));
  const [view] = find(document);
  let last = view.dataset.head;
  new MutationObserver(() => {
    if (last !== view.dataset.head) window.shown.push(last = view.dataset.head);
  }).observe(view, {attributes: true, attributeFilter: ["data-head"]});
}"""
PRESS_AND_HEAR = """canvas => {
  let drawn;
  document.addEventListener("explorer-head", ({detail}) => { drawn = detail.at; });
  canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
  document.dispatchEvent(new CustomEvent("explorer-choice", {detail: "grid"}));
  return drawn;
}"""


@pytest.fixture(scope="module")
def slow(browser: Browser, demos: Server) -> Iterator[tuple[Visitor, SlowLine]]:
    """Somebody whose line to the server can be held: it is laid before the page opens."""
    made = Visitor(browser, demos.url)
    line = SlowLine(made.page)
    made.fetch("/")
    yield made, line
    made.no_mishap()
    made.close()


def opened(visitor: Visitor, show: str = "") -> Page:
    page = open_in(visitor, "every", show)
    page.evaluate(NOTE_SHOWN)
    return page


def rests(page: Page) -> None:
    page.locator(AT_REST).wait_for(state="attached")


def is_shown(page: Page, layer: int, head: int) -> None:
    """The picture, and what a screen reader is told of it."""
    name = f"demo, layer {layer}, head {head}"
    expect(page.locator(".view.matrix")).to_have_attribute("data-head", f"{layer},{head}")
    expect(page.locator(".matrix canvas")).to_have_attribute("aria-label", re.compile(f"^{name}, "))


def test_what_is_drawn_is_what_the_server_sends(open_demo: OpenDemo) -> None:
    """Every plane of every head, byte for byte: both are then painted by the same code."""
    from tests.components.demo import every

    for show in ("", "many"):
        page = open_demo("every", show).page
        page.evaluate(NOTE_HEADS)
        page.locator(".grid canvas").focus()
        for key in [*["ArrowRight"] * 3, "ArrowDown", *["ArrowLeft"] * 3, "ArrowUp"]:
            page.keyboard.press(key)
        is_shown(page, 0, 0)
        handed = page.evaluate("window.handed")
        assert len(handed) == 8
        weights, allowed = every(show)
        names = [str(place) for place in range(weights.shape[-1])]
        words = dict.fromkeys(("row", "column", "sentence", "masked", "unit", "title"), "")
        how: dict[str, Any] = {"scale": "sequential", "words": words, "top": 1.0}
        for at, planes in handed.items():
            layer, head = map(int, at.split(","))
            message = encode(weights[layer, head], names, names, allowed=allowed[layer], **how)
            header, sent = wire.unpack(message)
            assert {name: base64.b64decode(text) for name, text in planes.items()} == sent
            assert (header["low"], header["high"], header["steps"]) == (0, 1, wire.UNIT_STEPS)


def test_a_click_draws_a_head_while_the_server_is_silent(slow: tuple[Visitor, SlowLine]) -> None:
    """What the server sends at last changes nothing, and an answer to an earlier pick neither."""
    guest, line = slow
    page = opened(guest)
    line.hold()
    guest.pick("grid", layer=1, head=1)
    is_shown(page, 1, 1)
    expect(page.locator(".grid .spoken")).to_have_text(re.compile("layer 1, head 1.* picked$"))
    value = three(heads(2, 4, 12, 12)[1, 1, 4, 1].item())
    expect(guest.point("matrix", 4, 1)).to_contain_text(f": {value}")
    expect(guest.point("matrix", 9, 1)).to_contain_text("is masked for")
    guest.click("matrix", 4, 1)
    guest.away()
    before = guest.picture("matrix")
    line.answered(page, 1)
    line.release()
    told(guest, "(1, 1), run 2")
    rests(page)
    assert guest.picture("matrix") == before
    line.hold()
    guest.pick("grid", layer=0, head=3)
    line.answered(page, 1)
    guest.pick("grid", layer=1, head=2)
    line.release()
    told(guest, "(1, 2), run 4")
    rests(page)
    is_shown(page, 1, 2)
    assert page.evaluate("window.shown") == ["1,1", "0,3", "1,2"]


def test_the_keys_draw_every_head_and_tell_the_last(slow: tuple[Visitor, SlowLine]) -> None:
    guest, line = slow
    page = opened(guest)
    page.locator(".grid canvas").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    is_shown(page, 1, 2)
    wait_until(lambda: page.evaluate("window.shown") == ["0,1", "0,2", "1,2"], "every head")
    told(guest, "(1, 2), run 2")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")  # who leaves does not wait
    told(guest, "(1, 1), run 3")
    is_shown(page, 1, 1)
    # Any run of the page sends the choice as the server knows it: while the keys do not rest
    # it does not come back.
    assert page.locator(".grid canvas").evaluate(PRESS_AND_HEAR) == [1, 2]
    told(guest, "(1, 2), run 4")
    is_shown(page, 1, 2)

    page = opened(guest, "another")  # a matrix of another pass waits for the server
    page.locator(".grid canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".grid .sentence")).to_contain_text("head 1: maximum weight")
    line.hold()
    page.keyboard.press("Enter")
    line.answered(page, 1)
    is_shown(page, 0, 0)
    line.release()
    is_shown(page, 0, 1)
