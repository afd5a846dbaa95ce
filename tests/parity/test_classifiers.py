"""A classifier's settings and its way through a folder: scores as the reference's pipeline."""

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf

from explorer.catalog import ModelError, opened_model
from explorer.catalog.opened_model import OpenModel
from explorer.export.published_folder import to_folder
from explorer.inference.answers import answer_of
from explorer.runs.run import open_folder
from explorer.runs.worker import train_to_end
from models.loading.checkpoint import CheckpointError
from models.loading.inspection import inspect_folder
from tests.tiny import labelled_table, reference_bert, tuned_run

TEXT = "the black cat"
NAMES = "abc"
PROBLEMS = ("single_label_classification", "multi_label_classification", "regression", "strange")


def numbered(names: str) -> dict[str, str]:
    return {str(number): name for number, name in enumerate(names)}


def values_of(classes: int) -> dict[str, list[Any]]:
    """What a config may say of this number of classes; ... leaves a key out."""
    names, right = NAMES[:classes], numbered(NAMES[:classes])
    return {
        "problem_type": [..., None, *PROBLEMS],
        "id2label": [
            *(right, ..., dict(reversed(right.items())), numbered("a" * classes), numbered("xyzu")),
            *({"0": 1}, {str(n + 1): name for n, name in enumerate(names)}, {}),
        ],
        "label2id": [..., {name: n for n, name in enumerate(names)}, {"z": 0}],
        "num_labels": [..., classes, classes + 1],
        "function_to_apply": [..., "sigmoid", "none", "strange"],
    }


def scores_of(opened: OpenModel) -> dict[str, float]:
    """Score by label, as the app says it."""
    tokens = opened.tokenizer.encode(TEXT)
    output = opened.model(torch.tensor([[token.id for token in tokens]]))[0]
    guesses = answer_of(opened, output, tokens).guesses
    assert [guess.score for guess in guesses] == sorted((g.score for g in guesses), reverse=True)
    return {guess.label: guess.score for guess in guesses}


def reference_tokenizer(folder: Path) -> Any:
    return hf.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def reference_scores(folder: Path, tokenizer: Any) -> dict[str, float]:
    """The same of the reference's pipeline."""
    model = hf.AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
    pipeline: Any = hf.pipeline("text-classification", model=model, tokenizer=tokenizer)
    return {each["label"]: each["score"] for each in pipeline(TEXT, top_k=None)}


def outcome_of(
    folder: Path, tokenizer: Any, changed: Mapping[str, Any], plain: Mapping[str, Any]
) -> str:
    """Whether we read the folder as the reference does; other words are a fault."""
    try:
        ours = scores_of(open_folder(folder))
    except (CheckpointError, ModelError):
        return "refused"
    try:
        theirs = reference_scores(folder, tokenizer)
    except Exception as error:  # noqa: BLE001  the reference raises whatever it likes
        others = {key for key, value in changed.items() if value != plain[key]}
        is_reported = not others.isdisjoint(inspect_folder(folder).unfollowed)
        return "reported" if is_reported else f"{changed}: ours alone, {error}"[:300]
    is_equal = ours == pytest.approx(theirs, abs=1e-5)
    return "equal" if is_equal else f"{changed}: {ours}, not {theirs}"


def changes(classes: int, *, thorough: bool) -> list[dict[str, Any]]:
    """Every value alone, in the thorough run every one with every other."""
    values = values_of(classes)
    first = {key: several[0] for key, several in values.items()}
    if not thorough:
        return [first, *(first | {key: value} for key in values for value in values[key][1:])]
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


@pytest.mark.parametrize("thorough", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("classes", [1, pytest.param(2, marks=pytest.mark.thorough), 3])
def test_settings_of_labels_are_read_alike(
    classes: int, thorough: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = reference_bert(tmp_path / "base", head="SequenceClassification", num_labels=classes)
    tokenizer = open_folder(base).tokenizer
    monkeypatch.setattr(opened_model, "tokenizer_of", lambda _: tokenizer)  # that of all of them
    their_tokenizer = reference_tokenizer(base)
    plain = json.loads((base / "config.json").read_text("utf-8"))
    outcomes: Counter[str] = Counter()
    first = {key: several[0] for key, several in values_of(classes).items()}
    for number, changed in enumerate(changes(classes, thorough=thorough)):
        folder = shutil.copytree(base, tmp_path / str(number))
        values = {key: value for key, value in (plain | changed).items() if value is not ...}
        (folder / "config.json").write_text(json.dumps(values), "utf-8")
        outcomes[outcome_of(folder, their_tokenizer, changed, first)] += 1
    assert outcomes.keys() <= {"equal", "refused", "reported"}, outcomes
    assert outcomes["equal"] > sum(outcomes.values()) / 4


def test_a_finetuned_classifier_comes_back_through_the_reference(tmp_path: Path) -> None:
    """From the app to a folder, to the reference, to another folder, to the app."""
    base = open_folder(reference_bert(tmp_path / "bert"))
    run = tuned_run(tmp_path / "runs", base, "sentences", labelled_table())
    assert train_to_end(run.folder) == "done"
    trained = open_folder(run.folder)
    assert to_folder(trained, tmp_path / "out") == "bert"
    scores = scores_of(trained)
    theirs = reference_scores(tmp_path / "out", reference_tokenizer(tmp_path / "out"))
    assert theirs == pytest.approx(scores, abs=1e-5)
    for part in (hf.AutoModelForSequenceClassification, hf.AutoTokenizer):
        part.from_pretrained(tmp_path / "out").save_pretrained(tmp_path / "back")
    assert scores_of(open_folder(tmp_path / "back")) == pytest.approx(scores, abs=1e-5)
