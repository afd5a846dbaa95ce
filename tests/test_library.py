"""The shelf of models: what is on it, what is damaged, what changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer import describe, library, parameters
from explorer.library import LibraryError
from explorer.tasks import TASKS
from tests.grids import grid
from tests.shelf import NAMES, shelf


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "shipped"))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    return shelf(tmp_path / "shipped")


def names() -> list[str]:
    return [entry.name for entry in library.entries()]


def test_shipped_models_and_runs_are_on_the_shelf(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "reverse-1"
    run.mkdir(parents=True)
    assert names()[0] == "translation"
    assert sorted(names()) == sorted(NAMES)
    (folder / "reverse").rename(run / "checkpoint")
    assert names()[-1] == "reverse-1"
    assert "reverse" not in names()
    assert library.open_model("reverse-1").example == "31415"


def test_without_any_model_the_shelf_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "nothing"))
    assert library.entries() == []


def test_a_model_is_opened_once_until_its_files_change(folder: Path) -> None:
    first = library.open_model("reviews")
    assert library.open_model("reviews") is first
    run = folder / "reviews" / "run.json"
    run.write_text(json.dumps({**json.loads(run.read_text()), "title": "Other"}))
    assert library.open_model("reviews").title == "Other"


def test_a_name_that_is_not_on_the_shelf(subtests: pytest.Subtests) -> None:
    for name in ["nothing", "../reviews", "", "x" * 500]:
        with (
            subtests.test(name=name),
            pytest.raises(LibraryError, match="There is no model called"),
        ):
            library.open_model(name)


def test_a_config_that_is_no_model_is_said_and_the_rest_goes_on(
    folder: Path, subtests: pytest.Subtests
) -> None:
    for content in ["", "{", "[]", '{"kind": "banana"}', '{"surprise": 1}']:
        with subtests.test(content=content):
            (folder / "reviews" / "config.json").write_text(content)
            entry = next(entry for entry in library.entries() if entry.name == "reviews")
            assert entry.config is None
            assert entry.fault
            assert library.open_model("translation")


@grid(
    "file, content",
    ["model.safetensors", "tokenizer.json"],
    [None, b"", b"nonsense", b"\xff" * 100],
)
def test_a_damaged_file_is_one_sentence(folder: Path, file: str, content: bytes | None) -> None:
    path = folder / "reviews" / file
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(LibraryError, match=r"\w\.$"):
        library.open_model("reviews")


def test_a_tokenizer_that_knows_too_much_is_refused(folder: Path) -> None:
    (folder / "reverse" / "tokenizer.json").write_text(
        (folder / "translation" / "tokenizer.json").read_text()
    )
    with pytest.raises(LibraryError, match="more tokens"):
        library.open_model("reverse")


def test_the_ledger_sums_to_the_total() -> None:
    for name in NAMES:
        model = library.open_model(name).model
        assert parameters.ledger(model).count == model.n_parameters


def test_the_config_in_words_says_the_sizes() -> None:
    words = describe.in_words(library.open_model("letters").config)
    assert "2 layers of 4 heads of 4" in words
    assert "at most 24 tokens" in words


def test_what_was_measured_is_shown_and_strange_records_are_not() -> None:
    run = {"metrics": {"nats a token": 3.701}, "baseline": {"name": "bigram", "value": 4.13}}
    assert describe.measured(run) == "nats a token 3.7 (bigram: 4.13)"
    records: list[dict[str, object]] = [{}, {"metrics": []}, {"metrics": {"x": "y"}}]
    for strange in records:
        assert describe.measured(strange) == "not measured"


def test_a_record_from_anywhere_stays_short(folder: Path) -> None:
    words = {"title": "a" * 200_000, "example": {"b": 1}, "examples": ["c" * 90_000, 3] * 4}
    (folder / "letters" / "run.json").write_text(json.dumps(words))
    (folder / "reverse" / "run.json").write_text(json.dumps({"title": ["x"], "example": "1\n2"}))
    found = {entry.name: entry for entry in library.entries()}
    assert found["letters"].title == "a" * library.TITLE_LIMIT
    assert found["letters"].examples == ("c" * library.EXAMPLE_LIMIT,)
    assert found["reverse"].example == "1 2"
    assert found["reverse"].title == TASKS["reverse"].title
