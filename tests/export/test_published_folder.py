"""A model that was trained here is taken away as the folder of a family, and opens again."""

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.catalog import opened_model
from explorer.catalog.opened_model import OpenModel
from explorer.export import published_folder
from explorer.inference.forward_pass import run_text
from explorer.runs.settings import spec_of
from explorer.runs.spec import RunError
from explorer.tasks import TASKS
from models.loading.checkpoint import save_checkpoint
from models.loading.checkpoint_tokenizer import CHAT_TEMPLATE
from models.model import Transformer

TASK_OF = {"gpt2": "induction", "llama": "induction", "bert": "negation"}


def trained(family: str, root: Path) -> OpenModel:
    """A model of a task in this shape, as a run leaves it (its weights are fresh ones)."""
    task = TASKS[TASK_OF[family]]
    spec = spec_of(task, {"like": family, "heads": 2, "d_model": 32})
    model = Transformer(spec.model, seed=3)
    run = {"task": task.name, "classes": ["bad", "mixed", "good"]} if family == "bert" else {}
    save_checkpoint(root / family, model, tokenizer=task.tokenizer.to_json(), run=run)
    return opened_model.open_checkpoint(root / family, family)


def test_the_download_answers_as_the_model_and_its_name_is_no_path(tmp_path: Path) -> None:
    for family in TASK_OF:
        ours = replace(trained(family, tmp_path), name="../../victim")
        with zipfile.ZipFile(io.BytesIO(published_folder.to_zip(ours))) as archive:
            (folder,) = {name.partition("/")[0] for name in archive.namelist()}
            archive.extractall(tmp_path / "out" / family)
        assert folder == published_folder.MODEL_FOLDER
        again = opened_model.open_checkpoint(tmp_path / "out" / family / folder, "again")
        text = TASKS[TASK_OF[family]].example
        assert again.family == family
        assert again.tokenizer.ids(text) == ours.tokenizer.ids(text)
        assert run_text(again, text).answer == run_text(ours, text).answer


def test_a_published_tokenizer_goes_along_and_one_that_is_missing_is_named(tmp_path: Path) -> None:
    trained("llama", tmp_path)
    source, there = opened_model.open_checkpoint(tmp_path / "llama", "llama"), tmp_path / "there"
    published_folder.to_folder(source, there)
    (there / CHAT_TEMPLATE).write_text("{{ messages }}")
    (there / "special_tokens_map.json").write_text('{"pad_token": "<pad>"}')
    opened = opened_model.open_checkpoint(there, "there")
    assert "and its tokenizer" in published_folder.what_opens(opened)
    assert published_folder.to_folder(opened, tmp_path / "again") == "llama"
    names = {path.name for path in there.iterdir()}
    assert {path.name for path in (tmp_path / "again").iterdir()} == names
    for name in names - {"config.json", "model.safetensors"}:
        assert (tmp_path / "again" / name).read_bytes() == (there / name).read_bytes()
        (there / name).unlink()
    bare = opened_model.open_checkpoint(there, "bare")
    assert "has no tokenizer" in published_folder.what_opens(bare)
    published_folder.to_folder(bare, tmp_path / "again")
    left = {path.name for path in (tmp_path / "again").iterdir()}
    assert left == {"config.json", "model.safetensors"}


def test_a_family_of_another_kind_is_refused() -> None:
    with pytest.raises(RunError, match="Models like gpt2 are of kind decoder; this task needs"):
        spec_of(TASKS["reverse"], {"like": "gpt2"})


def test_the_command_never_replaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained("llama", tmp_path)
    export = ["export", str(tmp_path / "llama")]
    for _ in range(2):  # an export is made again
        assert main([*export, str(tmp_path / "out")]) == 0
        assert "is a llama folder" in capsys.readouterr().out
    mine = tmp_path / "mine" / "thesis.txt"
    mine.parent.mkdir()
    mine.write_text("years")
    assert main([*export, str(mine.parent)]) == 2
    assert "holds other files" in capsys.readouterr().err
    assert mine.read_text() == "years"
