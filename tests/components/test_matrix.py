"""The matrix view in a real browser: what it says is what the tensor holds."""

from __future__ import annotations

import re

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from explorer.components import wire
from explorer.components.matrix import encode, natural_height, room
from tests.components.conftest import OpenDemo
from tests.components.samples import STRANGE, WORDS, attention, causal
from tests.components.test_wire import shown
from tests.served import wait_until


def at(view: Locator, row: float, column: float) -> dict[str, float]:
    """The middle of a cell, counted from the canvas' corner."""
    left, band, cell = map(float, str(view.get_attribute("data-cells")).split())
    return {"x": left + (column + 0.5) * cell, "y": band + (row + 0.5) * cell}


def hover(page: Page, row: float, column: float) -> None:
    view = page.locator(".view.matrix")
    view.locator("canvas").hover(position=at(view, row, column))  # type: ignore[arg-type]


def sentence(page: Page) -> Locator:
    return page.locator(".matrix .sentence")


def said_at(page: Page, row: float, column: float) -> str:
    hover(page, row, column)
    return sentence(page).inner_text()


def test_hover_says_the_value_of_the_tensor(open_demo: OpenDemo) -> None:
    page = open_demo("matrix", "words")
    for row, column in [(0, 0), (4, 1), (5, 2), (11, 11)]:
        hover(page, row, column)
        value = wire.encode(attention(12)[row, column]).codes.item() / wire.UNIT_STEPS
        said = f"{WORDS[row]} attends to {WORDS[column]}: {shown(value)}"
        expect(sentence(page)).to_have_text(said + (" or less" if value == 1e-4 else ""))
        expect(page.locator(".matrix .place")).to_have_text(f"query {row}, key {column}")


def test_beside_a_large_number_small_ones_are_said_as_they_are(open_demo: OpenDemo) -> None:
    page = open_demo("matrix", "exact")
    for (row, column), said in {
        (0, 0): "3,000",
        (0, 1): "0.300",
        (1, 0): "0.0500",
        (1, 1): "3.00e−8",
    }.items():
        hover(page, row, column)
        place = f"query {row + 3}, key {12 + 2 * column}"  # of a part, their own numbers
        expect(page.locator(".matrix .place")).to_have_text(place)
        expect(sentence(page).locator(".value")).to_have_text(said)


def test_a_masked_cell_says_so_and_a_label_names_its_token(open_demo: OpenDemo) -> None:
    page = open_demo("matrix", "words")
    hover(page, 2, 5)
    expect(sentence(page)).to_have_text("small may not look at sat")
    hover(page, 3, -0.8)
    expect(sentence(page)).to_have_text("query 3 of 12: black")


def test_click_holds_arrows_walk_escape_lets_go(open_demo: OpenDemo) -> None:
    page = open_demo("matrix", "words")
    canvas, spoken = page.locator(".matrix canvas"), page.locator(".matrix .spoken")
    view = page.locator(".view.matrix")
    canvas.click(position=at(view, 5, 2))  # type: ignore[arg-type]
    page.mouse.move(5, 5)
    expect(sentence(page)).to_contain_text("sat attends to small")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(sentence(page)).to_contain_text("on attends to black")
    expect(spoken).to_contain_text("on attends to black")
    page.keyboard.press("Escape")
    expect(sentence(page)).to_have_class("sentence idle")
    canvas.click(position=at(view, 5, 2))  # type: ignore[arg-type]
    canvas.click(position=at(view, 5, 2))  # type: ignore[arg-type]
    page.mouse.move(5, 5)
    expect(sentence(page)).to_have_class("sentence idle")


def test_keyboard_alone_reaches_the_first_cell(open_demo: OpenDemo) -> None:
    page = open_demo("matrix", "words")
    canvas = page.locator(".matrix canvas")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(sentence(page)).to_contain_text("<s> attends to <s>")
    assert "12 by 12" in str(canvas.get_attribute("aria-label"))


def test_new_values_keep_the_held_cell_and_move_nothing(open_demo: OpenDemo) -> None:
    page = open_demo("matrix", "words")
    view = page.locator(".view.matrix")
    before = view.bounding_box()
    view.locator("canvas").click(position=at(view, 5, 2))  # type: ignore[arg-type]
    page.get_by_role("slider").press("ArrowRight")
    value = wire.encode(attention(12, 1)[5, 2]).codes.item() / wire.UNIT_STEPS
    page.mouse.move(5, 5)
    expect(sentence(page)).to_contain_text(f"sat attends to small: {shown(value)}")
    assert view.bounding_box() == before


def test_strange_labels_are_drawn_and_not_executed(open_demo: OpenDemo) -> None:
    page = open_demo("matrix", "strange")
    for row in range(len(STRANGE)):
        hover(page, row, 0)
        expect(page.locator(".matrix .place")).to_have_text(f"query {row}, key 0")
    hover(page, 0, 0)
    expect(sentence(page)).to_contain_text("<script>document.title='taken'</script>")
    hover(page, 7, 0)
    expect(sentence(page)).to_contain_text("<U+202E>turned")
    assert page.title() != "taken"
    assert page.evaluate("document.querySelectorAll('img[src=x]').length") == 0


@pytest.mark.parametrize("size", [1, 128, 512, 1024])
def test_every_size_is_painted(open_demo: OpenDemo, size: int) -> None:
    page = open_demo("matrix", str(size))
    said = "<s>0 attends to <s>0: 1.00"
    # Half a pixel is a whole cell of the largest: a page that still settles moves it away.
    wait_until(lambda: said_at(page, 0, 0).startswith(said), f"{said!r} of a settled page")
    notes = page.locator(".matrix .notes")
    if size >= 128:
        expect(notes).to_contain_text("label shown")
    if size == 1024:
        expect(notes).to_contain_text("each dot is the largest of its cells")
    colours = page.locator(".matrix canvas").evaluate(
        """canvas => new Set(new Uint32Array(canvas.getContext("2d")
             .getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""
    )
    assert colours > 10


@pytest.mark.parametrize("dark", [False, True])
def test_zero_has_the_pages_background(open_demo: OpenDemo, dark: bool) -> None:
    page = open_demo("matrix", "difference", dark=dark)
    background = page.locator(".stApp").evaluate("app => getComputedStyle(app).backgroundColor")
    legend = page.locator(".matrix .bar").evaluate("bar => bar.style.background")
    stops = re.findall(r"rgb\([^)]*\)", legend)
    assert stops[len(stops) // 2] == background


def words_of() -> dict[str, str]:
    return dict.fromkeys(("row", "column", "sentence", "forbidden", "unit", "title"), "")


def test_a_wrong_shape_or_scale_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="2 rows"):
        encode(torch.zeros(3, 3), ["a", "b"], ["c"], scale="mask", allowed=None, words=words_of())
    with pytest.raises(ValueError, match="sequential, diverging, mask"):
        encode(torch.zeros(1, 1), ["a"], ["b"], scale="rainbow", allowed=None, words=words_of())


def test_a_wrong_scaling_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="all, row, column"):
        encode(
            torch.zeros(1, 1),
            ["a"],
            ["b"],
            scale="sequential",
            allowed=None,
            words=words_of(),
            scaling="sideways",
        )


def test_each_row_or_the_picture_has_the_full_colours(open_demo: OpenDemo) -> None:
    page = open_demo("matrix", "scaled")
    brightest = """canvas => {
      const [left, band, cell] = canvas.closest(".view").dataset.cells.split(" ").map(Number);
      const pen = canvas.getContext("2d"), at = (r, c) => Array.from(pen.getImageData(
        Math.round(left + (c + 0.15) * cell), Math.round(band + (r + 0.15) * cell), 1, 1).data);
      return [at(0, 0), at(1, 0)].map(String);
    }"""
    pictures = page.locator(".view.matrix canvas")
    by_picture, by_row, by_column, on_log = (
        pictures.nth(at).evaluate(brightest) for at in range(4)
    )
    assert by_picture[0] != by_picture[1]
    assert by_row[0] == by_row[1] == by_picture[0]
    assert by_column == by_picture, "the largest of the first column is that of the picture"
    assert on_log[0] == by_picture[0]
    assert on_log[1] not in (by_picture[1], by_picture[0])
    expect(page.locator(".matrix .legend").nth(1)).to_contain_text("largest of its row")
    expect(page.locator(".matrix .legend").nth(3)).to_contain_text("weight, log≤ 0.0008")


def test_a_left_out_cell_and_a_hidden_column_say_so(open_demo: OpenDemo) -> None:
    page = open_demo("matrix", "cut")
    hover(page, 0, 1)
    expect(sentence(page)).to_have_text(
        "<s>, the: left out, the row's larger values reach its share"
    )
    hover(page, 1, 2)
    expect(sentence(page)).to_have_text("small is hidden")
    hover(page, -0.8, 2)
    expect(sentence(page)).to_have_text("key 2 of 12: small, hidden; click to show it")
    page.locator(".matrix canvas").click(
        position=at(page.locator(".view.matrix"), -0.8, 1)  # type: ignore[arg-type]
    )
    expect(page.get_by_text("asked for column 1", exact=True)).to_be_visible()
    page.locator(".matrix canvas").press("ArrowDown")
    page.locator(".matrix canvas").press("h")
    expect(page.get_by_text("asked for column 0", exact=True)).to_be_visible()


def test_a_mask_of_fewer_dimensions_is_spread_over_the_rows() -> None:
    message = encode(
        attention(4),
        WORDS[:4],
        WORDS[:4],
        scale="sequential",
        allowed=causal(4)[2:3],
        words=words_of(),
    )
    _, planes = wire.unpack(message)
    assert planes["allowed"] == bytes([0b11101110, 0b11101110])


def test_the_height_is_decided_by_the_labels_alone() -> None:
    assert natural_height(WORDS, WORDS) == natural_height(WORDS, WORDS)
    assert natural_height(["a"] * 1024, ["b"] * 1024) == 640


def test_a_strip_is_as_high_as_its_labels_need() -> None:
    """Many words written of a short sentence: every row has its label, every column its own."""
    assert room(9, 9, 520) == room(64, 64, 520) == room(9, 1, 520) == 520
    assert room(64, 5, 520) == 13 * 64 + 170


def test_a_held_cell_is_told_once_the_hand_rests_and_comes_back(open_demo: OpenDemo) -> None:
    page = open_demo("matrix", "held")
    place = page.locator(".matrix .place")
    expect(place).to_have_text("query 3, key 1")
    page.locator(".matrix canvas").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(place).to_have_text("query 6, key 1")
    expect(page.get_by_text("told 1 times: (6, 1)")).to_be_visible()
    expect(place).to_have_text("query 6, key 1")
    page.keyboard.press("Escape")
    expect(page.get_by_text("told 2 times: None")).to_be_visible()
    expect(place).to_have_text("")
    page.get_by_role("button", name="Hold the first").click()
    expect(place).to_have_text("query 0, key 0")
