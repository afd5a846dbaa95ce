"""Folders of the reference library, opened by hand: named at start, uploaded, typed; and torn."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests import zoo
from tests.browser.conftest import Visit, serve
from tests.browser.visiting import Visitor
from tests.served import Server, wait_until

HEAD = "attention_head"
NAMES = ("bert", "gpt2", "t5")
PAGES = ("At a glance", "Tokens", "Positions", "Attention", "Masks", "Checkpoints")
OPENER = "Open a model of your own"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the app is started for."""
    return zoo.zoo(tmp_path_factory.mktemp("zoo"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Server]:
    """The app as a newcomer starts it for a folder of models."""
    runs = tmp_path_factory.mktemp("served") / "runs"
    free = {"EXPLORER_FREE_PATH": "1", "HF_HUB_OFFLINE": "1"}
    yield from serve(runs, EXPLORER_MODELS=str(folder), **free)


def opener(visitor: Visitor) -> None:
    """The part of the Checkpoints page where models are brought, opened by a click."""
    visitor.page.get_by_text(OPENER, exact=True).click()


def upload(visitor: Visitor, folder: Path) -> None:
    """Choose a folder in the file chooser and send it."""
    chooser = visitor.widget("uploaded_model").locator("input[type=file]")
    chooser.set_input_files(folder)
    expect(visitor.widget("uploaded_model").get_by_text(f"{folder.name}/").first).to_be_visible()
    visitor.page.get_by_role("button", name="Open the upload").click()


def opens(visitor: Visitor, name: str) -> None:
    """The model of this name is chosen, and its page is drawn."""
    expect(visitor.page.get_by_role("combobox", name="Model")).to_have_value(name)
    visitor.rest()
    visitor.no_traceback()


@pytest.mark.bench  # ten seconds of a machine that does nothing else meanwhile
def test_a_newcomer_sees_the_heads_of_a_folder_within_ten_seconds(
    browser: Browser, folder: Path, tmp_path: Path
) -> None:
    start = time.monotonic()
    with Server(tmp_path / "runs", env={"EXPLORER_MODELS": str(folder / "bert")}) as server:
        visitor = Visitor(browser, server.url)
        try:
            visitor.open("/attention")
            visitor.drawn("overview")
            visitor.drawn(HEAD)
            seconds = time.monotonic() - start
            print(f"heads after {seconds:.1f} s")
            assert visitor.query().get("model", "bert") == "bert"
            opens(visitor, "bert")
            assert seconds < 10
        finally:
            visitor.close()


def test_a_head_is_chosen_by_a_click_and_a_cell_tells_itself(visitor: Visitor) -> None:
    page = visitor.open("/attention?model=bert&layer=0&head=0&text=the+cat+is+good")
    before = visitor.picture(HEAD)
    visitor.pick("overview", layer=2, head=3)
    expect(page.get_by_text("Layer 2, head 3", exact=True)).to_be_visible()
    wait_until(lambda: visitor.picture(HEAD) != before, "another picture")
    view = visitor.widget(HEAD).locator("[data-cells]")
    left, top, cell = map(float, str(view.get_attribute("data-cells")).split())
    view.locator("canvas").first.hover(position={"x": left + 1.5 * cell, "y": top + 2.5 * cell})
    sentence = visitor.widget(HEAD).locator(".sentence")
    expect(sentence).to_contain_text("cat attends to the: 0.")
    visitor.no_traceback()


def test_what_is_expected_behind_a_mask(visitor: Visitor) -> None:
    page = visitor.open("/attention?model=bert")
    expect(page.get_by_text("The model expects behind the mask")).to_be_visible()
    visitor.type("the cat is good")
    expect(page.get_by_text("Put [MASK] in place of a word")).to_be_visible()
    visitor.type("the [MASK] is [MASK]")
    expect(page.get_by_text("There are 2 masks")).to_be_visible()
    visitor.no_traceback()


def test_two_sentences_are_read_as_a_pair(visitor: Visitor) -> None:
    page = visitor.open("/tokens?model=bert&text=the+cat")
    pair = page.get_by_label("Second sentence", exact=True)
    pair.fill("a dog")
    pair.press("Enter")
    visitor.asks(pair="a dog")
    main = page.get_by_test_id("stMain")
    for word in ("dog", "[SEP]"):
        expect(main.get_by_role("listitem").get_by_text(word, exact=True).first).to_be_visible()
    visitor.follow("Attention")
    visitor.drawn(HEAD)
    expect(page.get_by_label("Second sentence", exact=True)).to_have_value("a dog")
    visitor.no_traceback()


@pytest.mark.parametrize("name", NAMES)
def test_every_page_shows_every_model(visitor: Visitor, name: str) -> None:
    page = visitor.open(f"/?model={name}")
    for title in PAGES:
        visitor.follow(title)
        visitor.no_traceback()
        opens(visitor, name)
        expect(page.get_by_text("cannot be opened", exact=False).nth(1)).to_have_count(0)
    for view in ("Weights", "Norms", "Spectra", "Heads", "Doctor"):
        visitor.open(f"/checkpoints?model={name}&show={view}")
        visitor.no_traceback()
    assert visitor.violations() == []
    assert visitor.notes.errors == []


def test_numbers_are_read_where_there_is_no_tokenizer(visitor: Visitor) -> None:
    page = visitor.open("/attention?model=gpt2&text=5+17+3")
    visitor.drawn(HEAD)
    visitor.type("hello")
    expect(page.get_by_text("so type token numbers such as 5 17 3.")).to_be_visible()
    visitor.type("1 2 50")
    expect(page.get_by_text("Token 50 does not exist")).to_be_visible()
    visitor.no_traceback()


def test_the_shelf_says_why(visitor: Visitor) -> None:
    page = visitor.open("/checkpoints")
    visitor.widget("why_torn").get_by_role("button").click()
    findings = visitor.widget("examined_findings")
    expect(findings.get_by_text("torn: ")).to_be_visible()
    expect(findings.get_by_text("Error").first).to_be_visible()
    page.get_by_role("button", name="Hide", exact=True).click()
    expect(findings).to_have_count(0)
    visitor.no_traceback()


def test_an_upload_opens_for_its_reader_and_by_its_address(
    visitor: Visitor, visit: Visit, tmp_path: Path
) -> None:
    mine = zoo.bert(tmp_path / "mine", seed=5, num_hidden_layers=2)
    page = visitor.open("/checkpoints")
    opener(visitor)
    upload(visitor, mine)
    wait_until(lambda: visitor.query().get("model", "").startswith("upload-"), "the upload")
    name = visitor.query()["model"]
    opens(visitor, name)
    visitor.follow("Attention")
    visitor.drawn(HEAD)
    stranger = visit()
    stranger.open("/checkpoints")
    expect(stranger.page.get_by_text(name)).to_have_count(0)
    friend = visit()
    friend.page.goto(page.url)
    friend.rest()
    friend.shows(HEAD, visitor.picture(HEAD))
    opens(friend, name)


def test_hostile_uploads_print_their_sentence_and_the_app_goes_on(
    visitor: Visitor, tmp_path: Path
) -> None:
    hostile = zoo.gpt2(tmp_path / "hostile")
    config = json.loads((hostile / "config.json").read_text())
    (hostile / "config.json").write_text(json.dumps(config | {"n_embd": 3 * 10**8}))
    page = visitor.open("/checkpoints")
    opener(visitor)
    upload(visitor, hostile)
    expect(page.get_by_text("This model cannot be opened: ")).to_be_visible()
    visitor.no_traceback()
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    shutil.copy(hostile / "config.json", pickled)
    (pickled / "pytorch_model.bin").write_bytes(b"\x80\x02c")
    page = visitor.open("/checkpoints")
    opener(visitor)
    upload(visitor, pickled)
    expect(page.get_by_text("This model cannot be opened: ")).to_be_visible()
    visitor.open("/attention?model=bert")
    visitor.drawn(HEAD)
    visitor.no_traceback()


def test_an_upload_beyond_eight_megabytes_is_taken(visitor: Visitor, tmp_path: Path) -> None:
    large = zoo.bert(tmp_path / "large", hidden_size=512, num_hidden_layers=2)
    assert (large / "model.safetensors").stat().st_size > 9_000_000
    visitor.open("/checkpoints")
    opener(visitor)
    upload(visitor, large)
    wait_until(lambda: visitor.query().get("model", "").startswith("upload-"), "the upload")


def test_a_typed_path_opens_and_a_wrong_one_is_said(visitor: Visitor, tmp_path: Path) -> None:
    zoo.gpt2(tmp_path / "typed")
    page = visitor.open("/checkpoints")
    opener(visitor)
    field = page.get_by_label("A folder on this machine, or a hub id")
    for wrong in ("/nowhere/at/all", "a b c", ""):
        field.fill(wrong)
        page.get_by_role("button", name="Open it").click()
        expect(page.get_by_text("There is no model folder of that name")).to_be_visible()
        visitor.rest()
    field.fill("nobody/nothing-of-this-name")
    page.get_by_role("button", name="Open it").click()
    expect(page.get_by_text("the hub cannot be reached")).to_be_visible()
    visitor.rest()
    field.fill(str(tmp_path / "typed"))
    page.get_by_role("button", name="Open it").click()
    visitor.asks(model="typed")
    opens(visitor, "typed")
