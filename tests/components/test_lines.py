"""The line view in a real browser."""

import pytest
import torch
from playwright.sync_api import Locator, expect

from explorer.components import wire
from explorer.components.lines import FAINT, encode
from tests.components.conftest import OpenDemo, painted, told
from tests.components.samples import WORDS, heads


def head(view: Locator, number: int) -> Locator:
    return view.get_by_role("button", name=f"head {number}", exact=True)


def drawn(view: Locator) -> list[int]:
    """The heads whose lines are drawn."""
    chips = view.locator(".heads button").all()
    return [at for at, chip in enumerate(chips) if chip.get_attribute("aria-pressed") == "true"]


def point(view: Locator, row: int) -> Locator:
    view.locator(".stage").hover(position={"x": 20, "y": row * 24 + 12})
    return view.locator(".sentence")


def test_a_query_says_what_it_attends_to_and_what_is_chosen_is_told(
    open_demo: OpenDemo,
) -> None:
    visitor = open_demo("lines")
    view, weights = visitor.widget("lines"), heads(4, 12, 12)[:, 5]
    sentence, best = point(view, 5), int(weights.argmax())
    expect(sentence).to_have_text(
        f"sat attends most to {WORDS[best % 12]}: {weights.max():.3f}, head {best // 12}"
    )
    assert drawn(view) == [0, 1, 2, 3]
    head(view, 1).click()
    assert drawn(view) == [0, 2, 3]
    head(view, 2).dblclick()
    assert drawn(view) == [2]
    head(view, 2).click()
    assert drawn(view) == [2], "the last cannot be turned off"
    head(view, 2).dblclick()
    assert drawn(view) == [0, 1, 2, 3]
    visitor.away()
    view.locator(".stage").focus()
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("ArrowDown")
    expect(sentence).to_contain_text("the attends most to")
    visitor.page.keyboard.press("ArrowRight")
    expect(sentence).to_contain_text("is attended to most by")
    visitor.page.keyboard.press("Escape")
    expect(sentence).to_have_class("sentence idle")

    cross, view = visitor.widget("cross"), visitor.widget("held")
    assert drawn(cross) == [1], "the chosen head is drawn alone"
    visitor.page.get_by_role("slider").press("ArrowRight")
    expect(head(cross, 2)).to_have_attribute("aria-pressed", "true")
    assert drawn(cross) == [2]
    assert drawn(view) == [1, 2]
    sentence = view.locator(".sentence")
    expect(sentence).to_contain_text("cat attends most to")
    head(view, 3).click()
    told(visitor, "((1, 2, 3), (0, 4))")
    view.locator(".stage").focus()
    visitor.page.keyboard.press("Escape")
    told(visitor, "((1, 2, 3), None)")
    assert drawn(view) == [1, 2, 3]
    expect(sentence).to_have_class("sentence idle")

    long = open_demo("lines", "long").widget("lines")  # 128 tokens scroll inside the view
    expect(point(long, 0)).to_contain_text("<s>0 attends most to")
    long.locator(".stage").evaluate("stage => { stage.scrollTop = 24 * 88; }")
    painted(visitor)
    expect(point(long, 0)).to_contain_text("cat88 attends most to")


def sent(weights: torch.Tensor) -> bytes:
    labels = [str(i) for i in range(weights.shape[-1])]
    return encode(weights, labels, labels, title="t", words=("query", "key"))


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
        encode(torch.zeros(1, 2, 2), ["a", "b"], ["a"], title="t", words=("query", "key"))
