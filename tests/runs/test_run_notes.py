"""What is noted of a run: bounded, replaced as a whole, and never in the way of the run."""

import signal
import subprocess
import sys
from pathlib import Path

from explorer.runs.run import all_runs
from explorer.runs.run_notes import LONGEST_NOTE, MOST_TAGS, Notes, as_tags, notes_in, write_notes
from tests.runs.making import tiny_run
from tests.served import ROOT

KILLED = """
import os, signal, sys
from pathlib import Path
from explorer.runs import run_files
from explorer.runs.run_notes import Notes, write_notes
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_notes(Path(sys.argv[1]), Notes(note="new"))
"""


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


def test_kill_9_in_mid_write_leaves_the_notes_that_were_there(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    write_notes(run.folder, Notes(note="old"))
    code = [sys.executable, "-c", KILLED, str(run.folder)]
    assert subprocess.run(code, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert run.notes().note == "old"
    assert [each.name for each in all_runs(tmp_path)] == [run.name]
    run.note(Notes(note="newer"))
    assert run.notes().note == "newer"
