"""Tokens as chips in a real browser."""

from playwright.sync_api import expect

from explorer.components import wire
from explorer.components.chips import MOST_CHIPS, encode
from explorer.text.token_labels import LONGEST, specials, text_of
from tests.browser.visiting import box_of
from tests.components.conftest import OpenDemo
from tests.components.samples import characters


def test_a_chip_says_what_it_is_is_picked_and_stands_in_its_place(open_demo: OpenDemo) -> None:
    visitor = open_demo("chips")
    page, view = visitor.page, visitor.widget("chips").locator(".chips")
    chip, sentence = view.locator(".chip"), view.locator(".sentence")
    expect(view.locator(".chip.marked")).to_have_text("␣cat")
    chip.nth(4).hover()
    expect(sentence).to_have_text(
        "␣cat is token 4 of 20 · id 14 · characters 15 to 18 · bytes 20 63 61 74"
    )
    expect(view.locator(".text .on")).to_have_text(" cat")
    chip.nth(0).hover()
    expect(sentence).to_have_text("<s> is token 0 of 20 · id 1 · special")
    view.locator(".text span", has_text="black").hover()
    expect(view.locator(".chip.on")).to_have_text("␣black")
    chip.nth(2).click()
    expect(page.get_by_text("picked 2", exact=True)).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text("picked 3", exact=True)).to_be_visible()

    shaded = visitor.widget("shaded")  # the larger its number, the darker
    chip = shaded.locator(".chip")
    read = "chips => chips.map(chip => getComputedStyle(chip).backgroundColor)"
    low, high, half = (
        float(each.rpartition("/")[2].strip(" )")) for each in chip.evaluate_all(read)
    )
    assert low == 0
    assert high == 4 * half > 0
    chip.nth(1).hover()
    expect(shaded.locator(".sentence")).to_have_text("b is token 1 of 3 · 2.00 norm")
    chip.nth(0).hover()
    expect(shaded.locator(".sentence")).to_have_text("a is token 0 of 3")

    later = visitor.widget("later")  # scrolls to what is marked, and the page does not
    expect(later.locator(".chip.later")).to_have_count(99)
    expect(later.locator(".chip")).to_have_count(400)
    row, marked = later.locator(".row"), box_of(later.locator(".chip.marked"))
    assert row.evaluate("row => row.scrollTop") > 0
    assert visitor.page.get_by_test_id("stMain").evaluate("main => main.scrollTop") == 0
    outer = box_of(row)
    assert outer["y"] <= marked["y"] <= outer["y"] + outer["height"] - marked["height"]

    two = visitor.widget("two")  # one above another
    item = two.locator("li").nth(2)
    expect(item.locator(".chip")).to_have_text(["␣cat", "␣dog"])
    expect(two.locator(".chip")).to_have_count(8)
    item.locator(".chip").nth(1).hover()
    expect(two.locator(".sentence")).to_contain_text("␣cat is token 2 of 4")
    expect(two.locator(".sentence")).to_contain_text("below it ␣dog")
    above, below = (box_of(item.locator(".chip").nth(at)) for at in (0, 1))
    assert (above["x"], above["width"]) == (below["x"], below["width"])
    assert above["y"] + above["height"] <= below["y"]

    emoji, labels = visitor.widget("emoji"), ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    frame = emoji.locator(".group")
    expect(frame).to_have_count(1)
    expect(frame.locator(".character")).to_have_text("😀")
    expect(frame.locator(".chip")).to_have_text(labels)
    expect(frame.get_by_role("list", name="😀")).to_be_visible()
    expect(emoji.locator(".chip")).to_have_text(["<s>", "Oh", *labels, "!"])
    outer, inner = box_of(frame), box_of(frame.locator(".chip").last)
    assert outer["x"] + outer["width"] >= inner["x"] + inner["width"]

    long = open_demo("chips", "long").widget("long")  # twenty thousand tokens do not stop the page
    expect(long.locator(".rest")).to_contain_text(f"The first {MOST_CHIPS} are shown")
    assert long.locator(".chip").count() == MOST_CHIPS


def test_a_long_text_is_sent_as_far_as_its_chips() -> None:
    text = "a" * (MOST_CHIPS + 50)
    header, _ = wire.unpack(encode(characters(text), text))
    assert len(header["text"]) == MOST_CHIPS


def test_labels_are_visible_and_end() -> None:
    for label, shown in {
        "a b": "a␣b",
        "\n": "↵",
        "\t": "⇥",
        "": "∅",
        "\x00": "<U+0000>",
        "\u202e": "<U+202E>",
        "\ud800": "<U+D800>",
        "\u200d": "\u200d",
        "é": "é",
    }.items():
        assert text_of(label) == shown
    assert len(text_of("x" * 10_000)) == LONGEST
    assert specials(["a", "b"]) == [], "of plain strings none is special"
