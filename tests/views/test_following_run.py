"""The film of a run that goes on: it says how far it is, and has each snapshot that is there."""

import shutil
from pathlib import Path

import pytest

from explorer.runs.spec import WAITING
from explorer.runs.worker import train_to_end
from tests import apps
from tests.runs.making import tiny_run
from tests.views.drawing import sent

PAGE = "training/training_history"


@pytest.mark.usefixtures("at_the_machine")
def test_a_run_that_goes_on_is_followed_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    run = tiny_run(tmp_path)
    train_to_end(run.folder)
    at = apps.page(PAGE, model=run.name, text="abcdef")
    assert not at.get("progress"), "it has ended"
    shutil.rmtree(run.folder / "checkpoint")
    step, last = run.snapshots()[-1]
    aside = last.rename(tmp_path / "aside")
    run.mark(WAITING)
    at.run()
    assert not at.exception
    assert at.get("progress")
    assert step not in sent(at, "film")[0]["steps"]
    aside.rename(last)
    at.run()
    assert sent(at, "film")[0]["steps"] == [step for step, _ in run.snapshots()]
