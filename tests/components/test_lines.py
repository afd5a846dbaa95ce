"""The line view in a real browser."""

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from explorer.components import wire
from explorer.components.lines import FAINT, encode
from tests.components.conftest import OpenDemo
from tests.components.samples import WORDS, heads


def head(page: Page, number: int) -> Locator:
    return page.get_by_role("button", name=f"head {number}", exact=True)


def drawn(page: Page) -> list[int]:
    """The heads whose lines are drawn."""
    chips = page.locator(".lines .heads button").all()
    return [at for at, chip in enumerate(chips) if chip.get_attribute("aria-pressed") == "true"]


def point(page: Page, row: int) -> None:
    page.locator(".lines .stage").hover(position={"x": 20, "y": row * 24 + 12})


def test_a_query_says_what_it_attends_to_most_in_the_heads_that_are_drawn(
    open_demo: OpenDemo,
) -> None:
    page = open_demo("lines", "words").page
    point(page, 5)
    weights = heads(4, 12, 12)[:, 5]
    best = int(weights.argmax())
    expect(page.locator(".lines .sentence")).to_have_text(
        f"sat attends most to {WORDS[best % 12]}: {weights.max():.3f}, head {best // 12}"
    )
    assert drawn(page) == [0, 1, 2, 3]
    head(page, 1).click()
    assert drawn(page) == [0, 2, 3]
    head(page, 2).dblclick()
    assert drawn(page) == [2]
    head(page, 2).click()
    assert drawn(page) == [2], "the last cannot be turned off"
    head(page, 2).dblclick()
    assert drawn(page) == [0, 1, 2, 3]


def test_the_chosen_head_is_drawn_alone_and_follows_the_choice(open_demo: OpenDemo) -> None:
    page = open_demo("lines", "cross").page
    assert drawn(page) == [1]
    page.get_by_role("slider").press("ArrowRight")
    expect(head(page, 2)).to_have_attribute("aria-pressed", "true")
    assert drawn(page) == [2]


def test_512_tokens_scroll_inside_the_view(open_demo: OpenDemo) -> None:
    page = open_demo("lines", "512").page
    point(page, 0)
    expect(page.locator(".lines .sentence")).to_contain_text("<s>0 attends most to")
    page.locator(".lines .stage").evaluate("stage => { stage.scrollTop = 24 * 400; }")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    point(page, 0)
    expect(page.locator(".lines .sentence")).to_contain_text("cat400 attends most to")


def test_keyboard_walks_through_the_tokens(open_demo: OpenDemo) -> None:
    page = open_demo("lines", "strange").page
    sentence = page.locator(".lines .sentence")
    page.locator(".lines .stage").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(sentence).to_contain_text("<img")
    page.keyboard.press("ArrowRight")
    expect(sentence).to_contain_text("is attended to most by")
    page.keyboard.press("Escape")
    expect(sentence).to_have_class("sentence idle")


def test_the_heads_drawn_and_the_held_token_are_told_and_come_back(open_demo: OpenDemo) -> None:
    page = open_demo("lines", "held").page
    assert drawn(page) == [1, 2]
    expect(page.locator(".lines .sentence")).to_contain_text("cat attends most to")
    head(page, 3).click()
    expect(page.get_by_text("told ((1, 2, 3), (0, 4))")).to_be_visible()
    page.locator(".lines .stage").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_text("told ((1, 2, 3), None)")).to_be_visible()
    assert drawn(page) == [1, 2, 3]
    expect(page.locator(".lines .sentence")).to_have_class("sentence idle")


def sent(weights: torch.Tensor) -> bytes:
    labels = [str(i) for i in range(weights.shape[-1])]
    return encode(weights, labels, labels, key="l", title="t", words=("query", "key"))


def test_faint_lines_of_long_inputs_are_not_sent_and_short_inputs_are_sent_whole() -> None:
    message = sent(heads(2, 512, 512))
    header, planes = wire.unpack(message)
    values = wire.decode(wire.codes_of(planes["values"], header["shape"]), header)
    assert header["faint"] == FAINT
    assert ((values == 0) | (values >= FAINT)).all()
    assert len(message) < 400_000
    header, planes = wire.unpack(sent(torch.full((1, 2, 2), 0.001)))
    assert header["faint"] == 0
    assert (wire.codes_of(planes["values"], header["shape"]) == 10).all()


def test_a_wrong_shape_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="1 columns"):
        encode(torch.zeros(1, 2, 2), ["a", "b"], ["a"], key="l", title="t", words=("query", "key"))
