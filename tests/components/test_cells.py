"""The table to pick from in a real browser, and what it makes of what a browser sends."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

from explorer.components import wire
from explorer.components.picker import encode_cells
from tests.components.conftest import OpenDemo, texts_on, told


def test_a_cell_says_its_number_and_is_chosen_by_a_click_and_by_keys(open_demo: OpenDemo) -> None:
    visitor = open_demo("cells")
    view, sentence = visitor.widget("cells"), visitor.point("cells", 1, 2)
    expect(sentence).to_have_text("Layer 1, head 2: 0.0600 weight")
    expect(view.locator(".legend")).to_contain_text("0.0700 weight")
    painted = [text for text, *_ in texts_on(visitor, "cells") if "." in text]
    assert painted == [f"{at / 100:.3f}" for at in range(1, 8)]
    visitor.click("cells", 1, 2)
    told(visitor, "(1, 2), run 2")
    visitor.away()
    view.locator("canvas").focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.keyboard.press("ArrowUp")
    expect(sentence).to_contain_text("Layer 0, head 3")
    visitor.page.keyboard.press("Enter")
    told(visitor, "(0, 3), run 3")

    legend = visitor.widget("diverging").locator(".legend")
    expect(legend).to_contain_text("−2")
    expect(legend).to_contain_text("hatched: no value")
    expect(visitor.point("diverging", 0, 0)).to_contain_text("−2.00")
    expect(visitor.point("diverging", 0, 2)).to_have_text("Layer 0, head 2: no value")

    visitor.click("large", 143, 142)
    told(visitor, "(143, 142), run 4")

    expect(visitor.point("long", 1, 7)).to_contain_text("Layer the, head mat")
    written = texts_on(visitor, "long")
    names = [each for each in written if each[-1] == 28 and not each[0].endswith(("↓", "→"))]
    across = sorted((left, right, text) for text, left, right, _ in names)
    texts = [text for _, _, text in across]
    assert texts[:3] == ["<s>", "the", "cat"], "a long token takes no label from the others"
    assert texts[4:] == ["sat", "on", "the", "mat"]
    assert "…" in texts[3], "cut in the middle"
    assert all(one[1] <= other[0] for one, other in pairwise(across))
    assert all(left >= 0 for _, left, _, _ in written)
    assert sum(text.startswith("antidis") and "…" in text for text, *_ in written) == 1


def header(values: torch.Tensor, top: float | None = None, **how: Any) -> dict[str, Any]:
    rows, columns = ([f"layer {at}" for at in range(size)] for size in values.shape)
    packed = encode_cells(values, rows, columns, {}, scale="diverging", top=top, name="c", **how)
    return wire.unpack(packed)[0]


def test_what_is_sent_are_the_names_what_is_written_for_them_and_the_largest_size() -> None:
    names, short = ["layer 0", "layer 1"], ["0.0", "0.1"]
    sent = header(torch.zeros(2, 2), short_names=(names, short))
    assert (sent["rows"], sent["columns"]) == (names, names)
    assert sent["written"] == [names, short]
    assert header(torch.zeros(2, 2))["written"] == [names, names]
    assert header(torch.tensor([[-3.0, 1.0]]))["top"] == 3
    assert header(torch.tensor([[-3.0, 1.0]]), top=5)["top"] == 5
    assert header(torch.zeros(1, 2))["top"] == 1
    assert header(torch.full((1, 2), torch.nan))["top"] == 1
    with pytest.raises(ValueError, match="1 rows and 1 columns"):
        encode_cells(torch.zeros(2, 2), ["0"], ["0"], {}, scale="sequential", top=None, name="c")
