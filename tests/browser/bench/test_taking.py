"""Compared, written and taken away, by hand: on a model of ours and on a published one."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer import library
from explorer.reading import read
from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import wait_until

TEXT = "the black cat"
ENDINGS = ("png", "svg", "csv", "json", "npz", "html")


def taken(visitor: Visitor, ending: str, folder: Path) -> Path:
    """Click one of the ways out and wait for its file."""
    with visitor.page.expect_download() as download:
        visitor.widget(f"take_{ending}").get_by_role("button").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    assert path.suffix == f".{ending}"
    return path


def test_png_svg_export_data_export_offline_html_of_a_view(
    visitor: Visitor, visit: Visit, tmp_path: Path
) -> None:
    page = visitor.open(f"/attention?model=translation&text={TEXT}&layer=0&head=1")
    visitor.drawn("attention_head")
    visitor.widget("take_away").get_by_role("button").first.click()
    files = {ending: taken(visitor, ending, tmp_path) for ending in ENDINGS}
    opened = library.open_model("translation")
    weights = read(opened, TEXT).weights("decoder.cross_attn", 0, 1)
    table = list(csv.reader(io.StringIO(files["csv"].read_text("utf-8-sig"))))
    assert [[float(cell) for cell in row[1:]] for row in table[1:]] == weights.tolist()
    assert json.loads(files["json"].read_text())["sentence"] == TEXT
    with np.load(files["npz"], allow_pickle=False) as found:
        assert np.array_equal(found["values"], weights.numpy())
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in files["svg"].read_bytes()
    friend = visit()
    friend.page.goto(files["html"].as_uri())
    friend.drawn()
    friend.page.locator(".matrix canvas").focus()
    friend.page.keyboard.press("ArrowDown")
    expect(friend.page.locator(".matrix .sentence")).to_contain_text("the model looks at")
    assert friend.notes.errors == []
    expect(page.get_by_role("heading", name="Attention", level=1)).to_be_visible()


@pytest.mark.parametrize("model", ["translation", "gpt2"], ids=["ours", "published"])
def test_code_that_reproduces_the_view(visitor: Visitor, model: str) -> None:
    text = "5+17+3" if model == "gpt2" else TEXT
    page = visitor.open(f"/attention?model={model}&text={text}")
    page.get_by_text("The code that computes this").click()
    expect(page.get_by_text("Run this in the folder of the README:")).to_be_visible()
    expect(page.get_by_test_id("stCode").first).to_contain_text("load_checkpoint(")
    expect(page.get_by_test_id("stCode").first).to_contain_text(".weights(")


@pytest.mark.parametrize("model", ["shakespeare", "gpt2"], ids=["ours", "published"])
def test_compare_two_heads_difference_map(visitor: Visitor, model: str) -> None:
    text = "&text=5+17+3" if model == "gpt2" else ""
    page = visitor.open(f"/compare?model={model}{text}&layer=0&head=0")
    visitor.drawn("map_difference")
    before = visitor.picture("map_second")
    visitor.choose("Its head", "2")
    visitor.asks(other_head="2")
    wait_until(lambda: visitor.picture("map_second") != before, "another head", 30)
    expect(page.get_by_text("Both maps are over the same tokens.")).to_be_visible()


@pytest.mark.parametrize(
    ("model", "text", "other"),
    [
        ("negation", "the+food+was+good", "the food was bad"),
        ("bert", "the+cat+was+good", "the dog was good"),
    ],
    ids=["ours", "published"],
)
def test_compare_prompts_and_models(visitor: Visitor, model: str, text: str, other: str) -> None:
    page = visitor.open(f"/compare?model={model}&text={text}&with=Another+sentence")
    field = page.get_by_label("The other sentence")
    field.fill(other)
    field.press("Enter")
    expect(page.get_by_text("labels differ), so a cell is compared")).to_be_visible()
    field.fill(f"{other} not very good")
    field.press("Enter")
    expect(page.get_by_text("choose texts of equally many tokens")).to_be_visible()
    page.get_by_role("radio", name="Another model", exact=True).click()
    visitor.choose("The other model", "shakespeare")
    visitor.asks(other_model="shakespeare")
    visitor.drawn("map_second")


@pytest.mark.parametrize("model", ["shakespeare", "gpt2"], ids=["ours", "published"])
def test_compare_edited_against_plain(visitor: Visitor, visit: Visit, model: str) -> None:
    text = "5+17+3" if model == "gpt2" else "To+be"
    page = visitor.open(f"/edits?model={model}&text={text}&layer=0&head=1")
    page.get_by_role("button", name="Ablate layer 0, head 1", exact=True).click()
    visitor.asks(edits="1.1~h.d.0.1.z")
    visitor.follow("Compare")
    page.get_by_role("radio", name="Your edits", exact=True).click()
    page.get_by_text("The edits: undo them, or remove one", exact=True).click()
    expect(visitor.widget("edits_made").get_by_text("head 1 to zero")).to_be_visible()
    visitor.asks(edits="1.1~h.d.0.1.z")
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_role("radiogroup", name="Layer").get_by_role("radio", name="1").click()
    alike = page.get_by_text("Their rows are 0 bits apart")
    expect(page.get_by_text("Both maps are over the same tokens.")).to_be_visible()
    expect(alike).to_have_count(0)
    visitor.rest()
    friend = visit()
    friend.open(page.url.removeprefix(visitor.url))
    friend.shows("map_difference", visitor.picture("map_difference"))
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(alike).to_be_visible()


@pytest.mark.parametrize("model", ["shakespeare", "gpt2"], ids=["ours", "published"])
def test_a_generated_sentence_grows_its_maps_token_by_token(visitor: Visitor, model: str) -> None:
    text = "5+17+3" if model == "gpt2" else "To+be"
    page = visitor.open(f"/writing?model={model}&text={text}&length=4")
    seen = [visitor.picture("written_head")]
    for step in range(1, 4):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("slider", name="Step")).to_have_value(str(step))
        wait_until(lambda: visitor.picture("written_head") not in seen, "a larger map", 30)
        seen.append(visitor.picture("written_head"))
    page.get_by_role("button", name="Back").click()
    visitor.shows("written_head", seen[-2])


def test_a_model_that_only_reads_says_so(visitor: Visitor) -> None:
    page = visitor.open("/writing?model=bert&text=the+cat")
    expect(page.get_by_text("This model only reads: choose one that writes")).to_be_visible()
