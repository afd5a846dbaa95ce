"""The Models page without a browser: its tensors, its list of models, damaged folders."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest

from explorer.app.session import SESSION_KEY
from explorer.catalog import uploads
from explorer.runs.run import open_folder
from explorer.runs.worker import train_to_end
from explorer.system import data_folders
from explorer.text.number_format import megabytes
from explorer.views.checkpoints.models_to_open import MOST_MODELS_SHOWN
from explorer.views.checkpoints.weights import short_part
from models import Transformer, TransformerConfig
from tests import apps, tiny
from tests.apps import said, views
from tests.browser.page_views import table
from tests.tiny import labelled_table, save_model, save_small_models, tuned_run
from tests.views.drawing import press

VIEWS, WEIGHTS = table("checkpoints", "VIEWS"), "model.safetensors"
pytestmark = pytest.mark.usefixtures("small_models")
page = partial(apps.page, "models/checkpoints")


@pytest.fixture
def spoiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Models of one's own, to do damage on."""
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "own"))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    return save_small_models(tmp_path / "own")


def change(folder: Path, **tensors: torch.Tensor | None) -> None:
    """Put tensors into a file of weights, or take them out."""
    kept = load_file(folder / WEIGHTS)
    for name, tensor in tensors.items():
        if tensor is None:
            kept.pop(name)
        else:
            kept[name] = tensor
    save_file(kept, folder / WEIGHTS)


def listed(at: AppTest) -> list[str]:
    """The models in the list that can be opened, in its order."""
    keys = [str(button.key) for button in at.button]
    return [key.removeprefix("open_") for key in keys if key.startswith("open_")]


def test_what_a_view_offers_follows_the_tensors_and_the_sidebar() -> None:
    for part in ("Encoder", "Cross"):
        at = page(model="translation", show="Heads", part=part)
        statistics = next(c for c in at.segmented_control if c.key == "statistic").options
        assert ("Mean distance" in statistics) == (part != "Cross")
    options = page(model="letters", show="Singular values").selectbox(key="tensor").options
    assert options
    assert not any(option.endswith("bias") for option in options), "a vector has no spectrum"
    at = page(model="translation", show="Norms", tensors="Biases")
    assert views(at) >= {"norms_encoder", "norms_decoder"}
    at = page(model="translation", show="Parameters", ledger="paper")
    fault = next(each for each in at.caption if "cannot be exported" in each.value)
    nearest = fault.help.replace("\\", "").replace("\u2060", "")
    assert nearest.startswith("The nearest is ")
    assert "kind is decoder, here encoder-decoder" in nearest


@pytest.mark.usefixtures("at_the_machine")
def test_an_adapter_is_exported_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    bert = open_folder(tiny.reference_bert(tmp_path / "bert"))
    run = tuned_run(tmp_path, bert, "sentences", labelled_table(), lora_rank=2)
    train_to_end(run.folder)
    at = page(model=run.name, show="Parameters")
    (offered,) = [each for each in at.get("download_button") if "PEFT" in str(each.proto)]
    assert "Export the LoRA adapter" in str(offered.proto)


def test_a_tensor_is_chosen_by_the_address_and_kept_where_a_layer_and_a_model_have_it() -> None:
    at = page(model="letters", show="Weights", tensor="mlp.up_proj.weight", layer="0")
    assert "`decoder.blocks.0.mlp.up_proj.weight`" in said(at)
    at.selectbox(key="layer").set_value(1).run()
    assert "`decoder.blocks.1.mlp.up_proj.weight`" in said(at)
    at.selectbox(key="tensor").set_value("head.weight").run()
    assert "`head.weight`" in said(at)
    at = page(model="translation", show="Weights", tensor="cross_attn.v_proj.bias", part="Cross")
    assert "`decoder.blocks.0.cross_attn.v_proj.bias`" in said(at)
    apps.run(at.selectbox(key="model").set_value("letters"))
    assert "`decoder.blocks.1.self_attn.q_proj.weight`" in said(at)


def test_parts_of_a_layer_have_names_of_their_own() -> None:
    model = Transformer(TransformerConfig(kind="encoder-decoder", norm_position="sandwich"))
    assert model.decoder is not None
    names = [name for name, _ in model.decoder.blocks[0].named_parameters()]
    assert len({short_part(name) for name in names}) == len(names) > 20
    assert short_part("cross_attn.q_proj.bias") == "cross.queries.bias"
    assert short_part("self_residual.norm.weight") == "attn.norm"


def test_diagnostics_name_what_is_wrong_and_every_view_is_drawn(spoiled: Path) -> None:
    """Without a tokenizer and examples, too."""
    name = "decoder.blocks.0.self_attn.k_proj.weight"
    change(spoiled / "letters", **{name: torch.zeros(16, 16), "**b** <b> $x$": torch.zeros(2)})
    at = page(model="letters", show="Diagnostics")
    assert "**All zero**" in said(at)
    assert f"All weights are zero in {name}" in said(at)
    assert "**Unexpected tensors**" in said(at)
    assert not any("<b>" in prose.value for prose in [*at.markdown, *at.caption])
    for file in ("run.json", "tokenizer.json"):
        (spoiled / "letters" / file).unlink(missing_ok=True)
    for view in VIEWS:
        page(model="letters", show=view, tensor="self_attn.k_proj.weight")


def test_only_equal_tables_are_tied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, table = tmp_path / "tiny", "transformer.wte.weight"
    tiny.export_gpt2(folder)
    monkeypatch.setenv("EXPLORER_MODELS", str(folder))
    for noise, title in ((0, "Tied embeddings"), (1, "No tied embeddings")):
        output = load_file(folder / WEIGHTS)[table] + noise
        change(folder, **{"lm_head.weight": output})
        assert f"**{title}**" in said(page(model="tiny", show="Diagnostics"))


def test_a_model_that_lacks_a_tensor_is_examined_instead(spoiled: Path) -> None:
    missing = "decoder.blocks.1.mlp.up_proj.weight"
    change(spoiled / "letters", **{missing: None, "surplus": torch.zeros(2)})
    for view in ("Weights", "Heads"):
        at = page(model="letters", show=view)
        assert "cannot be opened" in said(at)
        assert "**Missing tensors**" in said(at)
        assert f"The config asks for {missing}" in said(at)
        assert "**Unexpected tensors**" in said(at)
    at.selectbox(key="model").set_value("reverse").run()
    assert "cannot be opened" not in said(at)


def test_a_folder_that_is_no_model_says_why_when_asked(spoiled: Path) -> None:
    (spoiled / "letters" / "config.json").write_text(json.dumps({"kind": "banana"}))
    at = page()
    assert "banana" not in said(at)
    assert "banana" in said(press(at, "why_letters"))
    assert "**Files that cannot be read**" in said(at)
    assert "banana" not in said(press(at, "why_letters"))


def test_of_many_models_the_first_and_the_chosen_one_are_listed_with_their_sizes(
    spoiled: Path,
) -> None:
    for number in range(MOST_MODELS_SHOWN):
        save_model(spoiled, f"many{number}", None, "the cat")
    at = page(model="many7")
    few = listed(at)
    size = (spoiled / "many7" / WEIGHTS).stat().st_size
    assert {megabytes(size), "Many7"} <= {text.value for text in at.text}
    kind = "decoder, 1 × 2 heads"
    assert kind in at.selectbox(key="model").help
    assert kind in {caption.value for caption in at.caption}
    assert not [each for each in at.get("download_button") if "PEFT" in str(each.proto)]
    every = listed(at.toggle(key="all_models").set_value(True).run())
    assert sorted(every) == sorted(folder.name for folder in spoiled.iterdir())
    chosen = [] if "many7" in every[:MOST_MODELS_SHOWN] else ["many7"]
    assert few == every[:MOST_MODELS_SHOWN] + chosen


def test_an_upload_over_the_limit_of_its_reader_is_refused_though_the_server_took_it() -> None:
    at = page()
    at.session_state[SESSION_KEY].upload_megabytes = 1
    at.run()
    sizes = {"config.json": 2, WEIGHTS: 2_000_000}
    files = [(f"mine/{name}", bytes(size), "") for name, size in sizes.items()]
    press(at.file_uploader(key="uploaded_model_0").set_value(files).run(), "take_upload")
    assert "An upload may be at most 1 MB; this one is 2 MB." in said(at)


def test_a_deleted_upload_leaves_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_PUBLIC", "1")
    monkeypatch.setenv("EXPLORER_LIMIT_UPLOADS_DAYS", "3")
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    folder = tiny.reference_gpt2(tmp_path / "mine")
    at = page()
    files = [(f"mine/{each.name}", each.read_bytes(), "") for each in folder.iterdir()]
    at.file_uploader(key="uploaded_model_0").set_value(files)
    press(at.run(), "take_upload")
    assert (
        "“mine” is on the list above and chosen for every page; "
        "it is kept for 3 days after its last use." in said(at)
    )
    assert listed(at)[0].startswith("mine-upload-")
    (kept,) = uploads.list_uploads(data_folders.uploads_root())
    uploads.delete(data_folders.uploads_root(), kept.folder.name)
    apps.run(at)
    assert "The model mine no longer exists; showing" in said(at)
    assert not any(name.startswith("mine") for name in listed(at))
