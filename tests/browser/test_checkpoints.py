"""The Checkpoints page by hand: the shelf, every view of a model, and models that readers bring."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from playwright.sync_api import expect

from tests import zoo
from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import wait_until


def opener(visitor: Visitor) -> None:
    """The part of the page where models are brought, opened by a click."""
    visitor.open("/checkpoints")
    visitor.page.get_by_text("Open a model of your own", exact=True).click()


def upload(visitor: Visitor, folder: Path) -> None:
    """Choose a folder in the file chooser and send it."""
    opener(visitor)
    chooser = visitor.widget("uploaded_model").locator("input[type=file]")
    chooser.set_input_files(folder)
    expect(visitor.widget("uploaded_model").get_by_text(f"{folder.name}/").first).to_be_visible()
    visitor.page.get_by_role("button", name="Open the upload").click()


def opens(visitor: Visitor, name: str) -> None:
    """The model of this name is chosen, and its page is drawn."""
    expect(visitor.page.get_by_role("combobox", name="Model")).to_have_value(name)
    visitor.rest()
    visitor.no_traceback()


def test_every_view_of_a_model_is_drawn_and_read_by_the_keyboard(visitor: Visitor) -> None:
    page = visitor.open("/checkpoints?model=shakespeare")
    visitor.choose("Ledger of", "paper")
    visitor.says("93,322,496 parameters")
    visitor.asks(ledger="paper")
    ledger = page.get_by_role("radio", name="Ledger", exact=True)
    ledger.focus()
    page.keyboard.press("Tab")
    chosen: str = page.evaluate("document.activeElement.innerText")
    if chosen.strip() != "Weights":  # a group of radio buttons may be one stop: arrows walk in it
        ledger.focus()
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    visitor.asks(show="Weights")
    visitor.drawn("weights_picture")
    expect(page.get_by_text("Each cell is one weight.")).to_be_visible()
    visitor.turn_to("Largest |w|")
    expect(page.get_by_text("Each cell is one |weight|.")).to_be_visible()
    visitor.turn_to("Norms")
    visitor.drawn("norms_decoder")
    visitor.widget("norms_decoder").locator("canvas").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    sentence = visitor.widget("norms_decoder").locator(".sentence")
    expect(sentence).to_contain_text("Layer 0, k_proj: root mean square 0.0")
    visitor.turn_to("Spectra")
    chart = page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first
    expect(chart).to_be_visible()
    expect(page.get_by_text("Exact: a singular value").first).to_be_visible()
    visitor.turn_to("Heads")
    visitor.drawn("head_statistics")
    visitor.turn_to("Doctor")
    expect(page.get_by_text("Looks trained", exact=True)).to_be_visible()
    expect(visitor.widget("findings").get_by_text("Warning")).to_have_count(0)


def test_a_button_of_the_shelf_opens_a_model_and_says_why_one_does_not_open(
    visitor: Visitor,
) -> None:
    page = visitor.open("/checkpoints")
    visitor.widget("open_negation").get_by_role("button").click()
    visitor.asks(model="negation")
    expect(page.get_by_role("heading", name="Sentiment with negation")).to_be_visible()
    expect(visitor.widget("open_negation").get_by_role("button")).to_be_disabled()
    visitor.widget("why_torn").get_by_role("button").click()
    findings = visitor.widget("examined_findings")
    expect(findings.get_by_text("torn: ")).to_be_visible()
    expect(findings.get_by_text("Error").first).to_be_visible()
    visitor.press("Hide")
    expect(findings).to_have_count(0)


def test_pages_show_a_published_model(visitor: Visitor) -> None:
    page = visitor.open("/?model=t5")
    for title in ("At a glance", "Tokens", "Positions", "Attention", "Masks", "Checkpoints"):
        visitor.follow(title)
        opens(visitor, "t5")
        expect(page.get_by_text("cannot be opened", exact=False).nth(1)).to_have_count(0)


def test_what_is_typed_for_a_published_model_is_read_or_refused(visitor: Visitor) -> None:
    """A word behind a mask, a pair of sentences, and numbers where there is no tokenizer."""
    page = visitor.open("/tokens?model=bert&text=the+cat")
    visitor.fill("Second sentence", "a dog")
    visitor.asks(pair="a dog")
    main = page.get_by_test_id("stMain")
    for word in ("dog", "[SEP]"):
        expect(main.get_by_role("listitem").get_by_text(word, exact=True).first).to_be_visible()
    visitor.follow("Attention")
    expect(page.get_by_label("Second sentence", exact=True)).to_have_value("a dog")
    visitor.fill("Second sentence", "")
    expect(page.get_by_text("Put [MASK] in place of a word")).to_be_visible()
    visitor.type("the [MASK] is [MASK]")
    expect(page.get_by_text("There are 2 masks")).to_be_visible()
    visitor.type("the [MASK] is good")
    expect(page.get_by_text("The model expects behind the mask")).to_be_visible()
    page = visitor.open("/attention?model=gpt2&text=5+17+3")
    visitor.drawn("attention_head")
    visitor.type("hello")
    expect(page.get_by_text("so type token numbers such as 5 17 3.")).to_be_visible()
    visitor.type("1 2 50")
    expect(page.get_by_text("Token 50 does not exist")).to_be_visible()


def test_an_upload_opens_for_its_reader_and_by_its_address(
    visitor: Visitor, visit: Visit, tmp_path: Path
) -> None:
    """It has more than eight megabytes, which is more than one message of a form may have."""
    mine = zoo.bert(tmp_path / "mine", seed=5, hidden_size=512, num_hidden_layers=2)
    assert (mine / "model.safetensors").stat().st_size > 9_000_000
    upload(visitor, mine)
    wait_until(lambda: visitor.query().get("model", "").startswith("upload-"), "the upload")
    name = visitor.query()["model"]
    opens(visitor, name)
    visitor.follow("Attention")
    seen = visitor.picture("attention_head")
    stranger = visit()
    stranger.open("/checkpoints")
    expect(stranger.page.get_by_text(name)).to_have_count(0)
    stranger.open(visitor.page.url.removeprefix(visitor.url))
    stranger.shows("attention_head", seen)
    opens(stranger, name)


def test_a_hostile_upload_is_one_sentence_and_the_app_goes_on(
    visitor: Visitor, tmp_path: Path
) -> None:
    hostile = zoo.gpt2(tmp_path / "hostile")
    config = json.loads((hostile / "config.json").read_text())
    (hostile / "config.json").write_text(json.dumps(config | {"n_embd": 3 * 10**8}))
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    shutil.copy(hostile / "config.json", pickled)
    (pickled / "pytorch_model.bin").write_bytes(b"\x80\x02c")
    for folder in (hostile, pickled):
        upload(visitor, folder)
        expect(visitor.page.get_by_text("This model cannot be opened: ")).to_be_visible()
        visitor.no_traceback()
    visitor.open("/attention?model=bert")
    visitor.drawn("attention_head")


def test_a_typed_path_opens_and_a_wrong_one_is_said(visitor: Visitor, tmp_path: Path) -> None:
    zoo.gpt2(tmp_path / "typed")
    page = visitor.page
    opener(visitor)
    field = page.get_by_label("A folder on this machine, or a hub id")
    for wrong, said in (
        ("/nowhere/at/all", "There is no model folder of that name"),
        ("", "There is no model folder of that name"),
        ("nobody/nothing-of-this-name", "the hub cannot be reached"),
    ):
        field.fill(wrong)
        page.get_by_role("button", name="Open it").click()
        expect(page.get_by_text(said)).to_be_visible()
        visitor.rest()
    field.fill(str(tmp_path / "typed"))
    page.get_by_role("button", name="Open it").click()
    visitor.asks(model="typed")
    opens(visitor, "typed")
