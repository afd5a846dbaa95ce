"""What a run has written is opened with the checks that every model goes through."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.library import LibraryError
from explorer.runs.opening import open_folder
from explorer.runs.worker import work
from explorer.tasks import TASKS
from tests.runs.making import tiny_run


def test_a_run_is_opened_by_its_folder_and_by_that_of_its_weights(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    with pytest.raises(LibraryError, match="The run reverse-1 has no weights yet"):
        open_folder(run.folder)
    work(run.folder)
    for folder in (run.folder, run.snapshots()[0][1]):
        opened = open_folder(folder)
        assert opened.task is TASKS["reverse"]
        assert opened.example == TASKS["reverse"].example
        assert opened.expectation == TASKS["reverse"].expectation


def test_a_tokenizer_that_knows_more_than_the_model_reads_is_refused(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    work(run.folder)
    checkpoint = run.checkpoint()
    assert checkpoint is not None
    other = TASKS["negation"].tokenizer.to_json()
    assert TASKS["negation"].tokenizer.vocab_size > run.spec.model.vocab_size
    (checkpoint / "tokenizer.json").write_text(other)
    with pytest.raises(LibraryError, match="knows more tokens than it reads"):
        open_folder(run.folder)
