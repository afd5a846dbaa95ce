"""Runs that start from a trained model, of ours or of a published family, whole or with LoRA."""

import io
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.catalog.folders import RUN_KEY
from explorer.catalog.opened_model import OpenModel
from explorer.export.published_folder import adapter_to_zip, has_adapter
from explorer.runs.finetuning import PARENT, finetune_spec, task_for
from explorer.runs.retraining import at_step_0, largest_difference, train_on
from explorer.runs.run import Run, open_folder
from explorer.runs.run_differences import changes, what_differs
from explorer.runs.spec import RunError
from explorer.runs.worker import train_to_end
from explorer.system.atomic_files import bytes_of
from explorer.text import TextError
from models import load_checkpoint
from tests import tiny
from tests.tiny import RUN_TEXT, labelled_table, save_small_models, tuned_run

Trained = tuple[Run, dict[str, Any]]
LORA: dict[str, Any] = {"lora_rank": 2, "lora_targets": ("q_proj", "down_proj")}


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> OpenModel:
    return open_folder(save_small_models(tmp_path_factory.mktemp("parents")) / "letters")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.reference_bert(tmp_path_factory.mktemp("published") / "bert")


@pytest.fixture(scope="module", params=[{}, LORA], ids=["whole", "lora"])
def trained(
    request: pytest.FixtureRequest, letters: OpenModel, tmp_path_factory: pytest.TempPathFactory
) -> Trained:
    """A run that has ended, and its settings."""
    run = tuned_run(tmp_path_factory.mktemp("runs"), letters, **request.param)
    assert train_to_end(run.folder) == "done"
    return run, request.param


def test_what_is_trained(trained: Trained, letters: OpenModel) -> None:
    run, settings = trained
    before = dict(letters.model.named_parameters())
    first = dict(open_folder(run.snapshots()[0][1]).model.named_parameters())
    after = dict(open_folder(run.folder).model.named_parameters())
    assert all(torch.equal(first[name], before[name]) for name in before), "step 0 is the parent"
    changed = {name for name in before if not torch.equal(after[name], before[name])}
    targets = tuple(f"{name}.weight" for name in settings.get("lora_targets", ()))
    assert changed == {name for name in before if not targets or name.endswith(targets)}
    if not targets:
        return
    for name in changed:
        assert torch.linalg.matrix_rank(after[name] - before[name], rtol=1e-4) <= 2
    parent = (run.folder / PARENT / "model.safetensors").stat()
    copies = [each.stat().st_ino for each in run.folder.rglob("model.safetensors")]
    assert len(copies) > 5
    assert {*copies} == {parent.st_ino}, "the parent's weights are on the disk once"
    every = sum(each.stat().st_size for each in run.folder.rglob("*") if each.is_file())
    assert bytes_of(run.folder) <= every - (len(copies) - 1) * parent.st_size


def test_a_resumed_run(trained: Trained, letters: OpenModel, tmp_path: Path) -> None:
    run, settings = trained
    parted = tuned_run(tmp_path, letters, **settings)
    for step in (1, 2, 3):
        parted.command("step")
        assert (train_to_end(parted.folder), parted.status().step) == ("paused", step)
    parted.command("resume")
    assert train_to_end(parted.folder) == "done"
    losses = [[each.loss for each in one.metrics().rows] for one in (run, parted)]
    assert losses[0] == losses[1]
    again = at_step_0(run, run.spec)
    for step, folder in run.snapshots():
        list(train_on(again, run, run.task(), run.spec, step))
        assert largest_difference(again.model, folder) == 0


@pytest.mark.parametrize("settings", [{}, LORA], ids=["whole", "lora"])
def test_a_head_for_a_published_model(tmp_path: Path, bert: Path, settings: dict[str, Any]) -> None:
    theirs = tmp_path / "bert"
    shutil.copytree(bert, theirs)
    opened = open_folder(theirs)
    run = tuned_run(tmp_path / "runs", opened, "sentences", labelled_table(), **settings)
    shutil.rmtree(theirs)
    assert train_to_end(run.folder) == "done"
    after = open_folder(run.folder)
    assert after.config.n_classes == 2
    assert after.tokenizer.ids("the black cat") == opened.tokenizer.ids("the black cat")
    head = "head." if settings else ""
    checkpoint = run.folder / "checkpoint"
    for name, each in load_checkpoint(checkpoint, merging=False).model.named_parameters():
        assert each.requires_grad == ("lora" in name or not settings or name.startswith(head))
    assert has_adapter(checkpoint) is bool(settings)
    if settings:
        with zipfile.ZipFile(io.BytesIO(adapter_to_zip(checkpoint))) as packed:
            files = {Path(name).name for name in packed.namelist()}
        assert files == {"adapter_config.json", "adapter_model.safetensors"}, "as peft has them"


REFUSED: list[tuple[str, str | None, dict[str, Any], str]] = [
    ("subwords", RUN_TEXT, {"lora_rank": 99}, "The rank must be between 1 and"),
    ("subwords", RUN_TEXT, {"lora_rank": 2, "lora_targets": ("w",)}, "The model has no w"),
    ("subwords", RUN_TEXT, {"lora_rank": -1}, "lora_rank must be between"),
    ("subwords", RUN_TEXT, {"lora_rank": 2, "lora_alpha": 0.0}, "lora_alpha must be between"),
    ("subwords", RUN_TEXT, {"steps": 1_000_000}, "the limit is"),
    ("subwords", "too short", {}, "give at least"),
    ("sentences", labelled_table(("good",)), {}, "at least two labels"),
    ("characters", RUN_TEXT, {}, "has a tokenizer of its own"),
    ("reverse", None, {}, "has a vocabulary of its own"),
    ("nothing", None, {}, "There is no task called"),
    ("pairs", "source,target\n" + "\n".join(f"the cat {n},a dog {n}" for n in range(80)),
     {}, "knows|encoder-decoder"),
]  # fmt: skip


def test_what_cannot_be_is_refused(letters: OpenModel, subtests: pytest.Subtests) -> None:
    for task, text, settings, why in REFUSED:
        with subtests.test(why), pytest.raises((RunError, TextError), match=why):
            finetune_spec(letters, task_for(letters, task, text), settings)


def test_runs_are_named_by_what_they_start_from(letters: OpenModel) -> None:
    task = task_for(letters, "subwords", RUN_TEXT)
    whole, two, four = (finetune_spec(letters, task, {"lora_rank": rank}) for rank in (0, 2, 4))
    assert changes(whole) == ["from letters", "whole model"]
    assert changes(two) == ["from letters", "LoRA rank 2"]
    assert what_differs([two, four]) == ["LoRA rank 2", "LoRA rank 4"]
    private = replace(letters, name=f"reverse-1-{RUN_KEY}{'a' * 24}")
    spec = finetune_spec(private, task_for(private, "subwords", RUN_TEXT), LORA)
    assert spec.parent == "reverse-1", "without the key of its link"


def test_a_run_whose_parent_was_lost_says_so(tmp_path: Path, letters: OpenModel) -> None:
    run = tuned_run(tmp_path, letters, **LORA)
    shutil.rmtree(run.folder / PARENT)
    with pytest.raises(RunError, match="The model that this run starts from cannot be read"):
        run.task()
