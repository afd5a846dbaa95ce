"""How a run is put into words."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from explorer.runs.spec import STATES, Status
from explorer.training import words
from tests.runs.making import tiny_run, tiny_spec


def test_progress_says_where_how_fast_and_how_long() -> None:
    status = Status("training", 120, 400, measure="exact match", value=0.25, steps_per_second=31.24)
    said = words.progress(status)
    assert said == "Step 120 of 400 · 31.2 steps/s · 9 s left · exact match 0.25 on held-out data"
    later = words.progress(status.replace(measured_at=100))
    assert later.endswith("exact match 0.25 on held-out data at step 100")
    assert words.progress(Status("done", 400, 400, seconds=12.3)) == (
        "Step 400 of 400 · 12 s of training"
    )


def test_durations(subtests: pytest.Subtests) -> None:
    for seconds, said in [(3.4, "3 s"), (89, "89 s"), (600, "10 min"), (7200, "2.0 h")]:
        with subtests.test(seconds=seconds):
            assert words.duration(seconds) == said


def test_every_state_has_words() -> None:
    assert set(words.SAID) == set(STATES)


def test_a_row_says_what_differs(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    row = words.row(run)
    assert row["run"] == "reverse-1"
    assert "d_model 64 → 16" in str(row["what differs"])
    assert "weights seed 5" in str(row["what differs"])
    (run.folder / "spec.json").write_text("nonsense")
    assert words.row(run)["state"] == "cannot be read"
    given = dataclasses.replace(tiny_spec(), task="characters")
    assert words.differs(given) == ""
