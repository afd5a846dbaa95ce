"""Another head is drawn by the browser, exactly as the server would send it, and told once."""

import base64
import re
from collections.abc import Iterator

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from explorer.components import wire
from explorer.components.matrix import encode
from explorer.text.number_format import three
from tests.browser.visiting import AT_REST, SlowLine, Visitor
from tests.components.conftest import OpenDemo
from tests.components.samples import heads
from tests.served import Server, wait_until

pytestmark = pytest.mark.browser
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


@pytest.fixture
def visitor(browser: Browser, demos: Server) -> Iterator[tuple[Visitor, SlowLine]]:
    """Somebody whose line to the server can be held."""
    made = Visitor(browser, demos.url)
    yield made, SlowLine(made.page)
    made.no_mishap()
    made.close()


def opened(visitor: Visitor, show: str = "") -> Page:
    page = visitor.page
    page.goto(f"{visitor.url}/demo_every?show={show}")
    visitor.drawn("grid")
    visitor.drawn("matrix")
    rests(page)
    return page


def rests(page: Page) -> None:
    page.locator(AT_REST).wait_for(state="attached")


def is_shown(page: Page, layer: int, head: int) -> None:
    """The picture, its title, and what a screen reader is told of it."""
    name = f"demo, layer {layer}, head {head}"
    expect(page.locator(".view.matrix")).to_have_attribute("data-head", f"{layer},{head}")
    expect(page.locator(".title")).to_have_text(name)
    label = re.compile(f"^{name}, ")
    expect(page.locator(".matrix canvas")).to_have_attribute("aria-label", label)


@pytest.mark.parametrize("show", ["", "many"])
def test_what_is_drawn_is_what_the_server_sends(open_demo: OpenDemo, show: str) -> None:
    """Every plane of every head, byte for byte: both are then painted by the same code."""
    from tests.components.demo import every

    page = open_demo("every", show).page
    page.locator(".view.matrix[data-painted]").wait_for(state="attached")
    page.evaluate(NOTE_HEADS)
    page.locator(".grid canvas").focus()
    for keys in (["ArrowRight"] * 3, ["ArrowDown"], ["ArrowLeft"] * 3, ["ArrowUp"]):
        for key in keys:
            page.keyboard.press(key)
    is_shown(page, 0, 0)
    handed = page.evaluate("window.handed")
    assert len(handed) == 8
    weights, allowed = every(show)
    size = weights.shape[-1]
    words = dict.fromkeys(("row", "column", "sentence", "masked", "unit", "title"), "")
    for at, planes in handed.items():
        layer, head = map(int, at.split(","))
        names = [str(place) for place in range(size)]
        message = encode(
            weights[layer, head],
            names,
            names,
            scale="sequential",
            allowed=allowed[layer],
            words=words,
            top=1.0,
        )
        header, sent = wire.unpack(message)
        assert {name: base64.b64decode(text) for name, text in planes.items()} == sent
        assert (header["low"], header["high"], header["steps"]) == (0, 1, wire.UNIT_STEPS)


def test_a_click_draws_another_head_while_the_server_is_silent(
    visitor: tuple[Visitor, SlowLine],
) -> None:
    """What the server sends at last changes nothing."""
    guest, line = visitor
    page = opened(guest)
    line.hold()
    guest.pick("grid", layer=1, head=1)
    is_shown(page, 1, 1)
    expect(page.locator(".grid .spoken")).to_have_text(re.compile("layer 1, head 1.* picked$"))
    said = guest.point("matrix", 4, 1)
    value = three(heads(2, 4, 12, 12)[1, 1, 4, 1].item())
    expect(said).to_contain_text(f": {value}")
    expect(guest.point("matrix", 9, 1)).to_contain_text("is masked for")
    guest.click("matrix", 4, 1)
    guest.away()
    before = guest.picture("matrix")
    line.answered(page, 1)
    page.evaluate(NOTE_SHOWN)
    line.release()
    expect(page.get_by_text("told (1, 1), run 2")).to_be_visible()
    rests(page)
    assert guest.picture("matrix") == before
    assert page.evaluate("window.shown") == []
    is_shown(page, 1, 1)


def test_the_keys_draw_every_head_and_tell_the_last(visitor: tuple[Visitor, SlowLine]) -> None:
    guest, _ = visitor
    page = opened(guest)
    page.evaluate(NOTE_SHOWN)
    page.locator(".grid canvas").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    is_shown(page, 1, 2)
    wait_until(lambda: page.evaluate("window.shown") == ["0,1", "0,2", "1,2"], "every head")
    expect(page.get_by_text("told (1, 2), run 2")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")  # who leaves does not wait
    expect(page.get_by_text("told (1, 1), run 3")).to_be_visible()
    is_shown(page, 1, 1)


def test_an_answer_to_an_earlier_pick_does_not_come_back(
    visitor: tuple[Visitor, SlowLine],
) -> None:
    guest, line = visitor
    page = opened(guest)
    page.evaluate(NOTE_SHOWN)
    line.hold()
    guest.pick("grid", layer=0, head=3)
    line.answered(page, 1)
    guest.pick("grid", layer=1, head=2)
    line.release()
    expect(page.get_by_text("told (1, 2), run 3")).to_be_visible()
    rests(page)
    is_shown(page, 1, 2)
    assert page.evaluate("window.shown") == ["0,3", "1,2"]


def test_what_is_chosen_does_not_come_back_while_the_keys_do_not_rest(
    visitor: tuple[Visitor, SlowLine],
) -> None:
    """Any run of the page sends the choice as the server knows it."""
    guest, _ = visitor
    page = opened(guest)
    assert page.locator(".grid canvas").evaluate(PRESS_AND_HEAR) == [0, 1]
    expect(page.get_by_text("told (0, 1), run 2")).to_be_visible()
    is_shown(page, 0, 1)


def test_a_matrix_of_another_pass_waits_for_the_server(visitor: tuple[Visitor, SlowLine]) -> None:
    guest, line = visitor
    page = opened(guest, "another")
    page.locator(".grid canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".grid .sentence")).to_contain_text("head 1: maximum weight")
    line.hold()
    page.keyboard.press("Enter")
    line.answered(page, 1)
    is_shown(page, 0, 0)
    line.release()
    is_shown(page, 0, 1)


def test_weights_that_a_weight_cannot_be_are_not_sent() -> None:
    """Their codes would depend on the head; and what is many would be heavy."""
    from explorer.analysis import thumbnails

    assert thumbnails.MOST_EXACT * 2 == 1 << 20
    assert torch.finfo(torch.float32).eps < thumbnails.LARGEST_WEIGHT - 1
