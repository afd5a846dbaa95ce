"""The inside of a block in a real browser: its parts, its pictures, its links."""

import re
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from playwright.sync_api import Locator, Page, expect
from torch import Tensor

from explorer.analysis.block_inside import BlockPart, block_inside
from explorer.charts import theme
from explorer.components import wire
from tests.components.conftest import OpenDemo
from tests.components.flows import passed
from tests.served import wait_until

HEAD = 1
"""The head that the demo chooses."""
PIXELS = """(canvas, [x, y, width, height, rows, columns]) => {
  const pen = canvas.getContext("2d"), scale = canvas.width / parseFloat(canvas.style.width);
  const middle = (start, size, at, count) =>
    Math.floor((start + (at + 0.5) * size / count) * scale);
  return Array.from({length: rows}, (_, row) => Array.from({length: columns}, (_, column) => {
    const at = [middle(x, width, column, columns), middle(y, height, row, rows)];
    return [...pen.getImageData(...at, 1, 1).data.slice(0, 3)];
  }));
}"""
"""The colours in the middle of every cell of a picture."""
SHADE = 4
"""Two neighbouring shades differ by no more, of 255."""
LARGE = 5.0, 5.0, 64.0, 64.0
"""Where the picture of the chosen head is in a box that stands alone in its column."""


def inside(page: Page) -> Locator:
    return page.locator(".pass-map .inside")


def box(page: Page, name: str) -> Locator:
    """The first part whose label begins so."""
    return inside(page).get_by_role("button", name=re.compile(f"^{name}")).first


def told(page: Page) -> Locator:
    return page.get_by_text(re.compile("^told "))


def point(part: Locator, x: float, y: float, *, click: bool = False) -> None:
    """Point at a place in the pictures of a part."""
    canvas = part.locator("canvas")
    canvas.scroll_into_view_if_needed()
    (canvas.click if click else canvas.hover)(position={"x": x, "y": y})


def ramp(stops: tuple[str, ...], codes: np.ndarray, size: int = 256) -> np.ndarray:
    """What these codes of so many are in colours along evenly spaced stops."""
    return 255 * LinearSegmentedColormap.from_list("", stops, size)(codes)[..., :3]


def colours_of(part: BlockPart, cells: Tensor) -> np.ndarray:
    """The colour that every cell should have, (rows, columns, 3); NaN where it is hatched."""
    if part.is_weights:
        codes = np.rint((cells / cells.max() * 255).numpy()).astype(int)
        return ramp(theme.LIGHT.sequential, codes)
    ((end, _),), _ = wire.signed_shades(cells[None])
    assert end is not None
    shown = np.clip(cells.nan_to_num(neginf=0).numpy() / end, -1, 1)
    codes = np.rint((np.rint(shown * 126) + 126) / 252 * 254).astype(int)
    found = ramp(theme.LIGHT.diverging, codes, 255)
    found[cells.isneginf().numpy()] = np.nan
    return found


def test_every_cell_has_the_colour_of_its_value_each_part_its_shape(open_demo: OpenDemo) -> None:
    page = open_demo("pass_map", "grouped").page
    parts = {part.name: part for part in block_inside(passed("grouped")[1], "decoder", 0).parts}
    for label, tail in (
        ("Scores", "self_attn.scores"),
        ("Masked scores", "self_attn.masked"),
        ("Attention weights", "self_attn.weights"),
        ("Head outputs", "self_attn.head_out"),
        ("Output projection", "self_attn.out"),
        ("Down projection", "mlp.out"),
    ):
        part = parts[f"decoder.0.{tail}"]
        cells = part.cells[HEAD if part.stage.per_head else 0]
        canvas = box(page, label).locator("canvas")
        shown = np.array(canvas.evaluate(PIXELS, [*LARGE, *cells.shape]), float)
        expected = colours_of(part, cells)
        known = ~np.isnan(expected)
        assert known.any()
        assert np.abs(shown - expected)[known].max() <= SHADE, label
    boxes = inside(page).locator(".box")
    expect(boxes).to_have_count(20)
    assert boxes.evaluate_all("all => all.map(each => each.ariaLabel)")[:6] == [
        "Residual stream: tokens 7 × d_model 16. Opens Forward pass.",
        "Norm: tokens 7 × d_model 16. Opens Forward pass.",
        "Queries, head 1: heads 4 × tokens 7 × d_head 4. Opens Forward pass.",
        "Keys, head 0: kv heads 2 × tokens 7 × d_head 4. Opens Forward pass.",
        "Values, head 0: kv heads 2 × tokens 7 × d_head 4. Opens Head, step by step.",
        "Queries, normalized, head 1: heads 4 × tokens 7 × d_head 4. Opens Forward pass.",
    ]
    expect(inside(page).locator(".formula").nth(1)).to_have_text("γ (x − μ) / σ + β")
    expect(inside(page).locator(".name")).to_have_text("Layer 0")
    expect(inside(page).locator("svg circle")).to_have_count(2)  # what is added to the stream
    weights = box(page, "Attention weights").locator("canvas")
    page.emulate_media(color_scheme="dark")
    zero = 255 * np.array(to_rgb(theme.DARK.background))

    def is_dark() -> bool:  # the key is masked: nothing is drawn
        shown = np.array(weights.evaluate(PIXELS, [*LARGE, 7, 7]))
        return bool(np.abs(shown[0, 1] - zero).max() <= 2)

    wait_until(is_dark, "pictures in the colours of the dark", 30)

    visitor = open_demo("pass_map", "both")  # a decoder that reads an encoder
    expect(inside(page).locator("svg circle")).to_have_count(3)
    expect(box(page, "Encoder output")).to_be_visible()
    expect(inside(page).locator(".name")).to_have_text("Decoder, layer 0")
    visitor.sized(900)
    last = inside(page).locator(".box").last
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()
    overflow = "e => [e.scrollHeight - e.clientHeight, document.body.scrollWidth - innerWidth]"
    assert max(inside(page).evaluate(overflow)) <= 0


def test_a_part_says_itself_is_a_door_and_chooses_its_head(open_demo: OpenDemo) -> None:
    page = open_demo("pass_map", "grouped").page
    says = inside(page).locator(".says")
    point(box(page, "Attention weights"), 6, 60)
    weights = re.compile("^Attention weights of head 1 .4 × 7 × 7., query cha?t, key")
    expect(says).to_have_text(weights)
    expect(says).to_have_text(re.compile(r"Darkest: [\d.]+\. Opens Attention maps$"))
    point(box(page, "Masked scores"), 66, 6)
    expect(says).to_contain_text(", masked. Colours to ±")
    point(box(page, "Residual stream"), 20, 15)
    stream = re.compile("^Residual stream .7 × 16., token .*, dimension .* Forward pass$")
    expect(says).to_have_text(stream)
    page.mouse.move(2, 2)
    expect(says).to_have_text(
        "Each box opens its page; a small picture chooses its head. Scroll sideways for the rest."
    )
    link: dict[str, Any] = {"part": "decoder.self_attn", "layer": 0, "head": 1, "query": 6}
    for label, page_name, address in (
        ("Scores", "head_steps", {"up_to": "scaled"}),
        ("Attention weights", "attention", {}),
        ("Up projection", "forward_pass", {"stage": "decoder.0.mlp.up"}),
    ):
        box(page, label).focus()
        page.keyboard.press("Enter")
        expected = {"page": page_name, **link, "key": None, "address": address}
        expect(told(page)).to_contain_text(str(expected))
    point(box(page, "Scores"), 8, 80, click=True)  # the first of the small ones
    expect(told(page)).to_contain_text("'page': 'overview'")
    expect(told(page)).to_contain_text("'head': 0, ")
    expect(box(page, "Scores, head 0")).to_be_visible()
    inside(page).get_by_label("Large picture of head").select_option("3")
    expect(box(page, "Keys, head 1")).to_be_visible()
    expect(told(page)).to_contain_text("'head': 3, ")
    box(page, "Scores").focus()
    page.keyboard.press("Escape")
    expect(inside(page)).to_be_hidden()
    expect(page.locator(".pass-map canvas").first).to_be_focused()
    expect(told(page)).to_contain_text("0.005, -1, -1, ")
    page.keyboard.press("Enter")
    expect(box(page, "Scores")).to_be_visible()
    inside(page).get_by_role("button", name="Close the layer").click()
    expect(inside(page)).to_be_hidden()
