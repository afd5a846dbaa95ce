"""The Checkpoints page by hand: its views by the keyboard, and models that readers bring."""

import json
import re
import shutil
from pathlib import Path

from playwright.sync_api import expect
from tokenizers import pre_tokenizers

from explorer.app.limits import MB, UPLOADS_RECEIVING_OF_READER
from explorer.app.streamlit_patches import UPLOADS_AT_ONCE
from tests import zoo
from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.models.loading.gguf_damage import good
from tests.served import wait_until


def upload(visitor: Visitor, folder: Path) -> None:
    """Choose a folder in the file chooser and send it."""
    visitor.open("/checkpoints")
    visitor.page.get_by_text("Open a model of your own", exact=True).click()
    chosen = visitor.widget("uploaded_model_0")
    chosen.locator("input[type=file]").set_input_files(folder)
    expect(chosen.get_by_role("button", name=f"Remove {folder.name}/").first).to_be_visible()
    visitor.page.get_by_role("button", name="Open the upload").click()


def test_a_gguf_file_opens_in_the_form_and_a_damaged_one_is_one_sentence(
    visitor: Visitor, tmp_path: Path
) -> None:
    letters = "".join(sorted(pre_tokenizers.ByteLevel.alphabet()))
    raw = good(letters=letters).written()
    for name, content in (("cut.gguf", raw[:-100]), ("tiny.Q8_0.gguf", raw)):
        (tmp_path / name).write_bytes(content)
        visitor.open("/checkpoints")
        visitor.page.get_by_text("Open a model of your own", exact=True).click()
        chosen = visitor.widget("uploaded_file_0")
        chosen.locator("input[type=file]").set_input_files(tmp_path / name)
        expect(chosen.get_by_role("button", name=f"Remove {name}").first).to_be_visible()
        visitor.page.get_by_role("button", name="Open the upload").click()
        if name == "cut.gguf":
            visitor.says("is cut short: it ends before")
            visitor.no_traceback()
    opens(visitor, uploaded(visitor, "tiny.Q8_0"))
    visitor.follow("Attention maps")
    visitor.says(re.compile("^tiny.Q8_0 · Decoder self-attention"))


def test_an_upload_that_is_too_much_is_refused_in_a_sentence(
    visitor: Visitor, tmp_path: Path
) -> None:
    (large := tmp_path / "large.gguf").write_bytes(bytes(20 * MB))
    visitor.open("/checkpoints")
    visitor.page.get_by_text("Open a model of your own", exact=True).click()
    visitor.widget("uploaded_file_0").locator("input[type=file]").set_input_files(large)
    why = UPLOADS_RECEIVING_OF_READER.refusal(most=20 * MB)
    expect(visitor.page.get_by_role("alertdialog").get_by_text(why)).to_be_visible()
    refused = [each for each in visitor.notes.errors if "File uploader error" in each]
    assert refused == visitor.notes.errors != []
    visitor.notes.errors.clear()


def test_a_folder_of_too_many_files_is_refused_in_a_sentence(
    visitor: Visitor, tmp_path: Path
) -> None:
    for number in range(UPLOADS_AT_ONCE + 1):
        (tmp_path / f"{number}.json").write_text("{}")
    visitor.open("/checkpoints")
    visitor.page.get_by_text("Open a model of your own", exact=True).click()
    form = visitor.widget("uploaded_model_0")
    expect(visitor.page.get_by_role("button", name="Open the upload")).to_be_disabled()
    form.locator("input[type=file]").set_input_files(tmp_path)
    expect(form.get_by_text(re.compile("at most 100 files, not 101")).first).to_be_visible()
    expect(visitor.page.get_by_role("button", name="Open the upload")).to_be_disabled()


def opens(visitor: Visitor, name: str) -> None:
    """The model of this name is chosen, and its page is drawn. The list says no upload's key."""
    visitor.asks(model=name)
    shown = visitor.page.get_by_role("combobox", name="Model")
    expect(shown).to_have_value(name.partition("-upload-")[0])
    visitor.rest()
    visitor.no_traceback()


def uploaded(visitor: Visitor, folder: str) -> str:
    """Wait for the upload of a folder of this name; what the address calls the model."""
    begins = f"{folder}-upload-"
    wait_until(lambda: visitor.query().get("model", "").startswith(begins), "the upload")
    return visitor.query()["model"]


def test_a_view_of_a_model_is_chosen_by_the_keyboard(visitor: Visitor) -> None:
    page = visitor.open("/checkpoints?model=shakespeare")
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


def test_an_upload_opens_for_its_reader_and_by_its_address_and_a_hostile_one_is_one_sentence(
    visitor: Visitor, visit: Visit, tmp_path: Path
) -> None:
    """It has more than eight megabytes, which is more than one message of a form may have."""
    hostile = zoo.gpt2(tmp_path / "hostile")
    config = json.loads((hostile / "config.json").read_text())
    (hostile / "config.json").write_text(json.dumps(config | {"n_embd": 3 * 10**8}))
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    shutil.copy(hostile / "config.json", pickled)
    (pickled / "pytorch_model.bin").write_bytes(b"\x80\x02c")
    for folder, fault in ((hostile, "config.json in hostile"), (pickled, "pickled holds pickled")):
        upload(visitor, folder)
        expect(visitor.page.get_by_text(fault)).to_be_visible()
        visitor.no_traceback()

    mine = zoo.bert(tmp_path / "mine", seed=5, hidden_size=512, num_hidden_layers=2)
    assert (mine / "model.safetensors").stat().st_size > 9_000_000
    upload(visitor, mine)
    name = uploaded(visitor, "mine")
    opens(visitor, name)
    visitor.follow("Attention maps")
    seen = visitor.picture("attention_head")
    stranger = visit()
    stranger.open("/checkpoints")
    expect(stranger.page.get_by_text(name)).to_have_count(0)
    stranger.open(visitor.page.url.removeprefix(visitor.url))
    stranger.shows("attention_head", seen)
    opens(stranger, name)


def test_no_row_of_the_list_is_cut(visitor: Visitor) -> None:
    """The list has no scroll box of its own, whose edge could fall into a row."""
    visitor.open("/checkpoints")
    assert visitor.widget("shelf").evaluate("rows => rows.scrollHeight <= rows.clientHeight")


def test_a_folder_cloned_from_a_hub_opens_under_its_own_name(
    visitor: Visitor, tmp_path: Path
) -> None:
    clone = zoo.bert(tmp_path / "minilm", seed=6)
    beside = [
        *(".gitattributes", "README.md", "LICENSE", "modules.json", "pytorch_model.bin"),
        *(".git/HEAD", ".git/config", ".git/objects/ab/cdef", "1_Pooling/config.json"),
        *("onnx/model.onnx", "training_args.bin", "figure.png"),
    ]
    for name in beside:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes(b"\x80\x02c")
    upload(visitor, clone)
    name = uploaded(visitor, clone.name)
    opens(visitor, name)
    page = visitor.page
    expect(page.get_by_role("heading", name=clone.name, exact=True)).to_be_visible()
    visitor.says(
        f"Skipped {len(beside)} files that a model does not need: .gitattributes, LICENSE and "
        f"{len(beside) - 2} others."
    )
    page.reload()
    opens(visitor, name)
    visitor.follow("Attention maps")
    visitor.says(re.compile(f"^{clone.name} · Encoder self-attention"))
    expect(page.get_by_test_id("stMain")).not_to_contain_text("upload-")
    visitor.follow("Checkpoints")
    page.get_by_text("Open a model of your own", exact=True).click()
    expect(page.get_by_text("Model folder")).to_be_visible()
    expect(page.get_by_label("Folder on this machine, or hub ID")).to_be_visible()
