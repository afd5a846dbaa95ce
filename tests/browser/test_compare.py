"""Two maps side by side, and what a reader takes along: files, lines of Python, an offline page."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from explorer import library
from explorer.reading import read
from explorer.runs.worker import work
from tests.browser.visiting import Visitor
from tests.panels.pasting import run
from tests.runs.making import tiny_run
from tests.served import ROOT, Server

TEXT = "the black cat"
ENDINGS = ("png", "svg", "csv", "json", "npz", "html")
SHIPPED = ROOT / "models" / "checkpoints"


def taken(visitor: Visitor, ending: str, folder: Path) -> Path:
    """Click one of the ways out and wait for its file."""
    with visitor.page.expect_download() as download:
        visitor.widget(f"take_{ending}").get_by_role("button").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    assert path.suffix == f".{ending}"
    return path


def test_a_view_is_saved_as_pictures_numbers_and_an_offline_page(
    visitor: Visitor, browser: Browser, tmp_path: Path
) -> None:
    visitor.open(f"/attention?model=translation&part=Cross&text={TEXT}&layer=0&head=1")
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
    offline = Visitor(browser, "file://")
    offline.page.goto(files["html"].as_uri())
    offline.drawn()
    offline.page.locator(".matrix canvas").focus()
    offline.page.keyboard.press("ArrowDown")
    expect(offline.page.locator(".matrix .sentence")).to_contain_text("the model looks at")
    assert offline.notes.errors == []
    assert offline.notes.hosts == set()
    offline.close()


def test_the_lines_of_python_on_the_page_give_the_number_on_the_page(visitor: Visitor) -> None:
    page = visitor.open("/?model=translation&part=Cross&layer=0&head=0")
    page.get_by_text("The code that computes this").click()
    code = page.get_by_test_id("stCode").first
    expect(code).to_contain_text("load_checkpoint")
    made = run(code.inner_text(), SHIPPED)
    visitor.drawn("start_head")
    visitor.widget("start_head").locator("canvas").first.focus()
    for press in ["ArrowDown"] * 2 + ["ArrowRight"] * 2:
        page.keyboard.press(press)
    said = visitor.widget("start_head").locator(".sentence")
    expect(said).to_contain_text("held")
    shown = float(said.inner_text().rpartition(":")[2].split()[0])
    assert shown == pytest.approx(float(made["weights"][1, 2]), abs=1e-3)


def test_two_heads_sentences_and_models_are_compared(visitor: Visitor) -> None:
    page = visitor.open("/compare?model=bert&text=the+cat+was+good&layer=0&head=0")
    before = visitor.picture("map_second")
    visitor.choose("Its head", "2")
    visitor.asks(other_head="2")
    visitor.changed("map_second", before)
    expect(page.get_by_text("Both maps are over the same tokens.")).to_be_visible()
    visitor.turn_to("Another sentence")
    visitor.fill("The other sentence", "the dog was good")
    expect(page.get_by_text("labels differ), so a cell is compared")).to_be_visible()
    visitor.fill("The other sentence", "the dog was good not very good")
    expect(page.get_by_text("choose texts of equally many tokens")).to_be_visible()
    visitor.turn_to("Another model")
    visitor.choose("The other model", "shakespeare")
    visitor.asks(other_model="shakespeare")
    visitor.drawn("map_second")


def test_two_steps_of_a_training_are_compared(visitor: Visitor, server: Server) -> None:
    run = tiny_run(server.runs)
    work(run.folder)
    page = visitor.open(f"/compare?model={run.name}&text=cab&with=A+training+step")
    visitor.drawn("map_difference")
    before = visitor.picture("map_second")
    visitor.choose("Step", "5")
    visitor.asks(other_step="5")
    expect(page.get_by_text("Step 5", exact=True)).to_be_visible()
    visitor.changed("map_second", before)


def test_the_edited_pass_is_compared_with_the_plain_one_and_undone(visitor: Visitor) -> None:
    page = visitor.open("/edits?model=shakespeare&text=To+be&layer=0&head=1")
    visitor.press("Ablate layer 0, head 1")
    visitor.asks(edits="1.1~h.d.0.1.z")
    visitor.follow("Compare")
    visitor.turn_to("Your edits")
    page.get_by_text("The edits: undo them, or remove one", exact=True).click()
    expect(visitor.widget("edits_made").get_by_text("head 1 to zero")).to_be_visible()
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_role("radiogroup", name="Layer").get_by_role("radio", name="1").click()
    alike = page.get_by_text("Their rows are 0 bits apart")
    expect(page.get_by_text("Both maps are over the same tokens.")).to_be_visible()
    expect(alike).to_have_count(0)
    visitor.press("Undo")
    expect(alike).to_be_visible()
