"""What is noted of a run: bounded, replaced as a whole, and never in the way of the run."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from explorer.runs.run_notes import LONGEST_NOTE, MOST_TAGS, Notes, as_tags, notes_in, write_notes
from tests.tiny import tiny_run


def test_notes_are_kept_as_far_as_they_are_short(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    assert run.notes() == Notes()
    run.note(Notes(("good", "good", "  two \n words ", ""), "x" * 2 * LONGEST_NOTE, "0" * 12, "T"))
    found = run.notes()
    assert found.tags == ("good", "two words")
    assert (len(found.note), found.sweep, found.sweep_title) == (LONGEST_NOTE, "0" * 12, "T")
    assert len(as_tags(map(str, range(100)))) == MOST_TAGS


def test_a_damaged_file_says_nothing(tmp_path: Path) -> None:
    for text in ("", "{", "[]", "[" * 100_000, '{"tags": 3, "note": [], "sweep": "../x"}'):
        (tmp_path / "notes.json").write_text(text)
        assert notes_in(tmp_path) == Notes(), text[:20]


def test_a_write_that_does_not_end_leaves_the_notes_that_were_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_notes(tmp_path, Notes(note="old"))
    monkeypatch.setattr(Path, "replace", Mock(side_effect=InterruptedError))
    with pytest.raises(InterruptedError):
        write_notes(tmp_path, Notes(note="new"))
    assert notes_in(tmp_path).note == "old"
