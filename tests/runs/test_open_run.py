"""What a run has written is opened with the checks that every model goes through."""

from pathlib import Path

import pytest

from explorer.catalog import ModelError
from explorer.runs.open_run import open_folder
from explorer.runs.worker import train_to_end
from explorer.tasks import TASKS
from tests.tiny import tiny_run


def test_a_run_is_opened_by_its_folder_and_by_that_of_its_weights(tmp_path: Path) -> None:
    run, reverse = tiny_run(tmp_path), TASKS["reverse"]
    with pytest.raises(ModelError, match="The run reverse-1 has no weights yet"):
        open_folder(run.folder)
    train_to_end(run.folder)
    for folder in (run.folder, run.snapshots()[0][1]):
        opened = open_folder(folder)
        assert opened.task is reverse
        assert (opened.example, opened.expectation) == (reverse.example, reverse.expectation)

    checkpoint, other = run.checkpoint(), TASKS["negation"].tokenizer
    assert checkpoint is not None
    assert other.vocab_size > run.spec.model.vocab_size
    (checkpoint / "tokenizer.json").write_text(other.to_json() or "")
    with pytest.raises(ModelError, match="has more tokens than its embedding has rows"):
        open_folder(run.folder)
