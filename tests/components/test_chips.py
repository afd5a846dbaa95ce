"""Tokens as chips in a real browser."""

from playwright.sync_api import expect

from explorer.components import wire
from explorer.components.chips import MOST, encode
from explorer.text.token_labels import LONGEST, specials, text_of
from tests.components.conftest import OpenDemo
from tests.components.samples import SENTENCE, characters, words


def test_a_chip_says_what_it_is_lights_its_span_and_is_picked(open_demo: OpenDemo) -> None:
    page = open_demo("chips", "words").page
    view = page.locator(".chips")
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


def test_what_comes_later_is_faint_and_a_long_text_scrolls_to_what_is_marked(
    open_demo: OpenDemo,
) -> None:
    page = open_demo("chips", "later").page
    chip = page.locator(".chips .chip")
    expect(page.locator(".chip.later")).to_have_count(99)
    expect(chip).to_have_count(400)
    expect(page.locator(".chip.marked")).to_be_in_viewport()
    row = page.locator(".chips .row")
    assert row.evaluate("row => row.scrollTop") > 0
    assert page.locator("[data-testid=stMain]").evaluate("main => main.scrollTop") == 0
    box, marked = row.bounding_box(), page.locator(".chip.marked").bounding_box()
    assert box
    assert marked
    assert box["y"] <= marked["y"] <= box["y"] + box["height"] - marked["height"]


def test_two_texts_stand_one_above_another(open_demo: OpenDemo) -> None:
    page = open_demo("chips", "two").page
    view = page.locator(".chips")
    item = view.locator("li").nth(2)
    expect(item.locator(".chip")).to_have_text(["␣cat", "␣dog"])
    expect(view.locator(".chip")).to_have_count(8)
    item.locator(".chip").nth(1).hover()
    expect(view.locator(".sentence")).to_contain_text("␣cat is token 2 of 4")
    expect(view.locator(".sentence")).to_contain_text("below it ␣dog")
    above, below = (item.locator(".chip").nth(at).bounding_box() for at in (0, 1))
    assert above
    assert below
    assert (above["x"], above["width"]) == (below["x"], below["width"])
    assert above["y"] + above["height"] <= below["y"]


def test_a_chip_is_the_darker_the_larger_its_number_is_which_it_says(open_demo: OpenDemo) -> None:
    view = open_demo("chips", "shaded").page.locator(".chips")
    chip = view.locator(".chip")
    read = "chip => getComputedStyle(chip).backgroundColor"
    colours = [chip.nth(at).evaluate(read) for at in range(3)]
    alphas = [float(each.rpartition("/")[2].strip(" )")) for each in colours]
    assert alphas[0] == 0
    assert alphas[1] == 4 * alphas[2] > 0
    chip.nth(1).hover()
    expect(view.locator(".sentence")).to_have_text("b is token 1 of 3 · 2.00 norm")
    chip.nth(0).hover()
    expect(view.locator(".sentence")).to_have_text("a is token 0 of 3")


def test_a_strange_sentence_is_shown_and_not_executed(open_demo: OpenDemo) -> None:
    page = open_demo("chips", "strange").page
    view = page.locator(".chips").first
    expect(view.locator(".chip").nth(1)).to_have_text("<script>document.title='taken'</script>")
    expect(view.locator(".text")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(view.locator(".text")).to_contain_text("<U+202E>turned")
    assert page.title() != "taken"
    assert page.locator("img[src=x]").count() == 0
    directions = view.locator(".chip").evaluate_all(
        "chips => new Set(chips.map(chip => getComputedStyle(chip).unicodeBidi)).size"
    )
    assert directions == 1


def test_twenty_thousand_tokens_do_not_stop_the_page(open_demo: OpenDemo) -> None:
    page = open_demo("chips", "20000").page
    expect(page.locator(".chips .rest")).to_contain_text(f"The first {MOST} are shown")
    assert page.locator(".chips .chip").count() == MOST


def test_what_is_sent_of_a_token_and_of_a_long_text() -> None:
    message = encode(words(SENTENCE), text=SENTENCE, key="c", name="token", pickable=False)
    header, _ = wire.unpack(message)
    assert header["labels"][4] == "␣cat"
    assert header["spans"][4] == [15, 19]
    assert header["muted"] == [0, len(words(SENTENCE)) - 1]
    text = "a" * (MOST + 50)
    header, _ = wire.unpack(encode(characters(text), text=text, key="c", name="t", pickable=False))
    assert len(header["text"]) == MOST


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


def test_the_chips_of_one_character_stand_in_one_frame(open_demo: OpenDemo) -> None:
    """Wherever tokens are chips; a click picks the single token all the same."""
    labels = ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    view = open_demo("chips", "emoji").page.locator(".chips")
    frame = view.locator(".group")
    expect(frame).to_have_count(1)
    expect(frame.locator(".character")).to_have_text("😀")
    expect(frame.locator(".chip")).to_have_text(labels)
    expect(frame.get_by_role("list", name="😀")).to_be_visible()
    expect(view.locator(".chip")).to_have_text(["<s>", "Oh", *labels, "!"])
    box, inner = frame.bounding_box(), frame.locator(".chip").last.bounding_box()
    assert box
    assert inner
    assert box["x"] + box["width"] >= inner["x"] + inner["width"]
    strip = open_demo("inspect", "emoji").page.locator(".inspect")
    expect(strip.locator(".group")).to_have_count(1)
    expect(strip.locator(".group .label")).to_have_text(
        [f"😀 {place}/4 {label}" for place, label in enumerate(labels, 1)]
    )
