"""What is typed or chosen in forms, and what the page answers."""

import shutil
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from explorer.app import reader_models
from explorer.app.reader_models import NamedModels
from explorer.app.session import SESSION_KEY
from explorer.views.checkpoints import models_to_open
from tests import tiny
from tests.apps import page, run, said


def test_a_typed_path(small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny.reference_gpt2(tmp_path / "typed")
    at = page("models/checkpoints")
    assert "To allow them to every visitor, start it with EXPLORER_FREE_PATH=1." in said(at), (
        "nothing says that this reader is on this machine"
    )
    monkeypatch.setattr(models_to_open, "is_local", lambda: True)
    run(at)
    for wrong in ("/nowhere/at/all", ""):
        type_and_open(at, wrong)
        assert "There is no model folder of that name" in said(at)
    type_and_open(at, str(tmp_path / "typed"))
    name = str(at.selectbox(key="model").value)
    assert at.selectbox(key="model").options[0] == "typed"
    other = page("models/checkpoints", model=name)
    assert "There is no model “typed-path-" in said(other), "who may not name paths finds none"
    monkeypatch.setattr(reader_models, "is_local", lambda: True)
    again = page("models/checkpoints", model=name)
    assert again.selectbox(key="model").value == name
    shutil.rmtree(tmp_path / "typed")
    assert "There is no model “typed-path-" in said(page("models/checkpoints", model=name))


def type_and_open(at: AppTest, place: str) -> None:
    at.text_input(key="typed_place").set_value(place)
    (opens,) = (each for each in at.button if each.label == "Open it")
    run(opens.click())


def test_an_address_means_the_same_folder_after_others_opened_some_of_its_name(
    small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_FREE_PATH", "1")
    folders = [tiny.reference_gpt2(tmp_path / "x" / "mine")]
    folders += [shutil.copytree(folders[0], tmp_path / place / "mine") for place in "yz"]
    one, other = page("models/checkpoints"), page("models/checkpoints")
    addresses = []
    for at, folder in zip((one, one, other), folders, strict=True):
        type_and_open(at, str(folder))
        addresses.append(at.query_params["model"])
    assert one.selectbox(key="model").options[:2] == ["mine", "mine (2)"]
    for address, folder in zip(addresses, folders, strict=True):
        kept = page("models/checkpoints", model=address).session_state[SESSION_KEY]
        assert kept.state(NamedModels).folders == [folder]


def test_a_token_is_replaced_masked_or_refused(published_models: None) -> None:
    """And a second sentence follows to other pages."""
    asked = {"text": "the cat is good", "change": "Token", "token_at": "4"}
    at = page("experiments/interventions", model="bert", **asked)
    assert "Token 4 is “good”." in said(at)
    at.text_input(key="new_token").set_value("dog a").run()
    assert "“dog a” is 2 tokens here: “dog”, “a”. Type one." in said(at)
    assert at.button(key="replace_token").disabled
    at.text_input(key="new_token").set_value("dog").run()
    run(at.button(key="replace_token").click())
    assert "“good” (4) replaced by “dog”" in said(at)
    run(at.button(key="mask_token").click())
    assert "replaced by “[MASK]”" in said(at)
    at.text_input(key="pair").set_value("a dog").run()
    run(at.switch_page("../../pages/attention/attention.py"))
    assert at.text_input(key="pair").value == "a dog"


def test_a_mask_preset_is_set(small_models: Path) -> None:
    at = page("experiments/interventions", model="letters", change="Mask")
    at.selectbox(key="mask_preset").set_value("Padding").run()
    run(at.button(key="set_mask").click())
    assert said(at).count("padding, the last 2 keys are masked") == 1


@pytest.mark.usefixtures("small_models")
def test_masks_and_the_form_that_edits_them_lead_to_each_other() -> None:
    at = page("attention/masks", model="letters", layer="1")
    found = {link.proto.label: link.proto for link in at.get("page_link")}
    address = dict(parse_qsl(found["Edit the mask cell by cell"].query_string))
    assert address == {"model": "letters", "change": "Mask", "mask_how": "Cell by cell"}
    at = page("experiments/interventions", **address)
    (back,) = (link.proto for link in at.get("page_link") if "masks do" in link.proto.label)
    assert back.page == "masks"
