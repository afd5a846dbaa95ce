"""The Models page by hand: its views by the keyboard, and models that readers bring."""

import re
from pathlib import Path

from playwright.sync_api import Locator, expect
from tokenizers import pre_tokenizers

from explorer.app.reader import COOKIE
from explorer.system.limits import MB, UPLOADS_RECEIVING_OF_READER
from tests import tiny
from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.models.loading.gguf_damage import good
from tests.served import wait_until

BESIDE = (".git/HEAD", "README.md", "pytorch_model.bin", "onnx/model.onnx", "training_args.bin")
"""What lies beside a model in a folder that was cloned from a hub."""


def open_form(visitor: Visitor) -> None:
    """The form for a model of one's own."""
    visitor.open("/checkpoints")
    visitor.page.get_by_text("Open a model of your own", exact=True).click()


def choose(visitor: Visitor, path: Path) -> Locator:
    """Choose a file or a folder in the file chooser of the form; the form."""
    kind = "model" if path.is_dir() else "file"
    chosen = visitor.page.locator(f"[class*=st-key-uploaded_{kind}_]")  # each upload has another
    expect(visitor.page.get_by_role("button", name="Open the upload")).to_be_disabled()
    chosen.locator("input[type=file]").set_input_files(path)
    return chosen


def upload(visitor: Visitor, path: Path) -> None:
    """Choose it and send it."""
    chosen = choose(visitor, path)
    expect(chosen.get_by_role("button", name=f"Remove {path.name}").first).to_be_visible()
    visitor.page.get_by_role("button", name="Open the upload").click()


def opens(visitor: Visitor, name: str) -> None:
    """The model of this name is chosen, and its page is drawn. The list says no upload's key."""
    visitor.asks(model=name)
    shown = visitor.page.get_by_role("combobox", name="Model")
    expect(shown).to_have_value(name.partition("-upload-")[0])
    visitor.rest()
    visitor.no_traceback()


def uploaded(visitor: Visitor, path: str) -> str:
    """Wait for the upload of this name; what the address calls the model."""
    begins = f"{path}-upload-"
    wait_until(lambda: visitor.query().get("model", "").startswith(begins), "the upload")
    return visitor.query()["model"]


def test_a_file_opens_and_damage_or_size_is_one_sentence(visitor: Visitor, tmp_path: Path) -> None:
    raw = good(letters="".join(sorted(pre_tokenizers.ByteLevel.alphabet()))).written()
    (cut := tmp_path / "cut.gguf").write_bytes(raw[:-100])
    (whole := tmp_path / "tiny.Q8_0.gguf").write_bytes(raw)
    (large := tmp_path / "large.gguf").write_bytes(bytes(20 * MB))
    open_form(visitor)
    upload(visitor, cut)
    visitor.says("is cut short: it ends before")
    visitor.no_traceback()
    choose(visitor, large)
    why = UPLOADS_RECEIVING_OF_READER.refusal(most=20 * MB)
    expect(visitor.page.get_by_role("alertdialog").get_by_text(why)).to_be_visible()
    refused = [each for each in visitor.notes.errors if "File uploader error" in each]
    assert refused == visitor.notes.errors != []
    visitor.notes.errors.clear()
    upload(visitor, whole)
    opens(visitor, uploaded(visitor, "tiny.Q8_0"))
    visitor.follow("Attention maps")
    visitor.says(re.compile("^tiny.Q8_0 · Decoder self-attention"))


def test_a_folder_opens_by_its_address(visitor: Visitor, visit: Visit, tmp_path: Path) -> None:
    """It has more than eight megabytes, which is more than one message of a form may have."""
    mine = tiny.reference_bert(tmp_path / "minilm", seed=5, hidden_size=512, num_hidden_layers=2)
    assert (mine / "model.safetensors").stat().st_size > 9_000_000
    for beside in BESIDE:
        (mine / beside).parent.mkdir(parents=True, exist_ok=True)
        (mine / beside).write_bytes(b"\x80\x02c")
    open_form(visitor)
    upload(visitor, mine)
    name = uploaded(visitor, "minilm")
    opens(visitor, name)
    page = visitor.page
    visitor.says(f"Skipped {len(BESIDE)} files that a model does not need")
    visitor.load()
    assert COOKIE not in page.evaluate("document.cookie"), "no script reads whose it is"
    opens(visitor, name)
    visitor.follow("Attention maps")
    visitor.says(re.compile("^minilm · Encoder self-attention"))
    expect(page.get_by_test_id("stMain")).not_to_contain_text("upload-")
    seen = visitor.picture("attention_head")
    stranger = visit()
    stranger.open("/checkpoints")
    expect(stranger.page.get_by_text(name)).to_have_count(0)
    stranger.open(page.url.removeprefix(visitor.url))
    stranger.shows("attention_head", seen)
    opens(stranger, name)


def test_a_view_is_chosen_by_the_keyboard_and_the_list_is_whole(visitor: Visitor) -> None:
    page = visitor.open("/checkpoints?model=shakespeare&show=Parameters")
    # The list has no scroll box of its own, whose edge could fall into a row.
    assert visitor.widget("model_list").evaluate("rows => rows.scrollHeight <= rows.clientHeight")
    parameters = page.get_by_role("radio", name="Parameters", exact=True)
    parameters.focus()
    page.keyboard.press("Tab")
    chosen: str = page.evaluate("document.activeElement.innerText")
    if chosen.strip() != "Weights":  # a group of radio buttons may be one stop: arrows walk in it
        parameters.focus()
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    visitor.asks(show="Weights")
    visitor.drawn("weights_picture")
    visitor.open("/attention?model=gpt2")
    visitor.choose("Model", "More models")
    visitor.titled("Models")
    visitor.asks(model="gpt2")
