"""The training loop: what it writes and obeys, whatever the machine does; a resume is exact."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Event
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

from explorer.__main__ import main
from explorer.catalog.run_index import step_folders
from explorer.runs import recorder
from explorer.runs.run import Run, create, create_in
from explorer.runs.spec import RunError
from explorer.runs.worker import advance, train_to_end
from explorer.system.atomic_files import Lock
from explorer.system.cooperative import Breakable
from explorer.system.pace import Pace
from explorer.tasks import task_metrics
from models import load_checkpoint
from models.loading import checkpoint
from models.training import Batch
from tests.served import ROOT, wait_until
from tests.tiny import assert_equal_weights, tiny_run, tiny_spec

KEPT = [0, 1, 2, 3, 5, 7, 10, 12]
"""The steps of a whole run whose weights are kept."""


def drive(run: Run, steps: int | None = None) -> None:
    """Advance the run by that many reports, or to its end."""
    progress = advance(run.folder)
    for count, _ in enumerate(progress, start=1):
        if count == steps:
            break
    progress.close()  # type: ignore[attr-defined]


def weights(folder: Path | None) -> dict[str, Tensor]:
    assert folder is not None
    return load_checkpoint(folder).model.state_dict()


def end_equally(*runs: Run) -> bool:
    """Whether these runs have made the same model, bit for bit."""
    first, *others = (weights(run.checkpoint()) for run in runs)
    return all(
        first.keys() == other.keys()
        and all(torch.equal(first[name], other[name]) for name in first)
        for other in others
    )


def test_a_run_leaves_everything_a_reader_looks_for_and_nothing_to_do(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    assert [progress.report.step for progress in advance(run.folder)] == list(range(1, 13))
    status = run.status()
    assert (status.state, status.step, status.share) == ("done", 12, 1.0)
    assert status.measure == "exact match"
    assert status.value is not None
    metrics = run.metrics()
    assert [step for step, _ in metrics.losses()] == list(range(1, 13))
    assert set(KEPT) <= {step for step, _ in metrics.values()}

    made = load_checkpoint(run.folder / "checkpoint")
    assert made.tokenizer is not None
    assert (made.run["task"], made.run["title"], made.run["steps"]) == ("reverse", "reverse-1", 12)
    assert made.run["training"] == run.spec.training.to_dict()
    assert made.run["weights_seed"] == 5
    assert [step for step, _ in run.snapshots()] == KEPT
    for step, folder in run.snapshots():
        of_step = load_checkpoint(folder).run
        assert (of_step["title"], of_step["measured_at"]) == (f"reverse-1 at step {step}", step)
    assert list(advance(run.folder)) == []
    for last in (run.snapshots()[-1][1], run.latest(), run.checkpoint()):
        assert_equal_weights(weights(last), made.model.state_dict())


def test_a_state_that_is_damaged_gives_way_to_the_one_before(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    older, good, damaged = (run.folder / "state" / f"step-00000{step}" for step in (2, 3, 7))
    drive(run, steps=2)
    shutil.copytree(older, tmp_path / "older")
    drive(run, steps=1)
    shutil.copytree(tmp_path / "older", older)
    shutil.copytree(good, damaged)
    (damaged / "state.safetensors").write_bytes(b"cut short")
    drive(run, steps=1)
    assert run.status().step == 4


def test_a_run_without_a_whole_state_keeps_what_it_has_and_stays_ended(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    drive(run, steps=3)
    for file in (run.folder / "state" / "step-000003").iterdir():
        file.write_bytes(b"cut short")
    before, status = (run.folder / "metrics.jsonl").read_bytes(), run.status()
    with pytest.raises(RunError, match=r"its state at step 3 is damaged, so it cannot resume"):
        train_to_end(run.folder)
    assert (run.folder / "metrics.jsonl").read_bytes() == before
    assert (run.status().state, run.status().step) == ("failed", 3)
    assert run.status().value == status.value
    assert run.checkpoint() is not None


@pytest.mark.parametrize(
    ("how", "at", "done"), [("leave", 5, 0), ("stop", 10, 0), ("pause", 17, 1), ("stop", 22, 1)]
)
def test_a_measurement_or_an_update_is_broken_off(
    how: str, at: int, done: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its next layer; what is kept is the last whole update, and it resumes to the bit."""
    monkeypatch.setattr(task_metrics, "LARGEST_PART", 32)
    plain, looks, leave = Breakable.step, list[int](), Event()

    def step(self: Breakable) -> None:
        looks.append(1)
        if len(looks) == at:
            leave.set() if how == "leave" else run.command(how)
        plain(self)

    run, whole = (tiny_run(tmp_path, accumulation=2, steps=4) for _ in range(2))
    with monkeypatch.context() as patched:
        patched.setattr(Breakable, "step", step)
        assert len([*advance(run.folder, leave.is_set)]) == done
    assert len(looks) == at, "and nothing else is computed"
    state = {"stop": "stopped", "pause": "paused", "leave": "interrupted"}[how]
    assert (run.status().state, run.status().step) == (state, done)
    title = load_checkpoint(run.folder / "checkpoint").run["title"]
    assert title == f"{run.name} at step {done}"
    if how != "leave":
        assert train_to_end(run.folder) == state
    run.command("resume")
    assert train_to_end(run.folder) == train_to_end(whole.folder) == "done"
    assert end_equally(whole, run)


def test_a_large_table_is_measured_on_a_sample_and_a_long_measurement_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(task_metrics, "LARGEST_PART", 16)
    monkeypatch.setattr(recorder, "TOLD_SECONDS", 0.0)
    monkeypatch.setattr(Pace, "is_due", lambda self: True)
    run, messages = tiny_run(tmp_path, steps=1), list[str]()
    for _ in advance(run.folder, tell=lambda *_: messages.append(run.status().message)):
        pass
    assert messages[1:4] == [f"Measuring 64 held-out rows: {read}" for read in (16, 32, 48)]
    task, model = run.task(), load_checkpoint(run.folder / "checkpoint").model
    batch = task.held_out_batch
    every = Batch(tuple(ids[::4] for ids in batch.inputs), batch.labels[::4])
    assert run.status().value == task_metrics.value_of(task.metric[1], model, every)
    assert str(task_metrics.value_of(task.metric[1], model, batch.rows(slice(0)))) == "nan"
    assert main(["resume", str(tiny_run(tmp_path, steps=1).folder)]) == 0
    output = capsys.readouterr()
    assert "Measuring 64 held-out rows: " in output.err
    assert "On 64 of 256 held-out rows: exact match" in output.out


def test_the_curve_ends_as_the_status_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is stopped between two measurements is measured once more."""
    monkeypatch.setattr(Pace, "is_due", lambda self: False)
    run = tiny_run(tmp_path)
    for last in (2, 3, 7):  # measured anyway, and twice not
        drive(run, steps=last - run.status().step)
        status, values = run.status(), run.metrics().values()
        assert values[-1] == (status.measured_at, status.value) == (last, status.value)
        assert len({step for step, _ in values}) == len(values)


def test_runs_of_a_race_take_turns_and_end_as_they_would_alone(tmp_path: Path) -> None:
    alone, *runs, damaged = (tiny_run(tmp_path) for _ in range(4))
    (damaged.folder / "spec.json").write_text("{")
    race = [run.folder for run in (*runs, damaged)]
    assert train_to_end(race[0], race) == "done"
    assert runs[1].status().step >= 11, "one turn behind at most"
    assert train_to_end(race[1], race) == train_to_end(alone.folder) == "done"
    ended = runs[0].status()
    assert (train_to_end(race[0], race), runs[0].status()) == ("done", ended), "and stays"
    assert end_equally(alone, *runs)


def test_the_target_ends_the_run_early(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, stop_at=0.0)
    assert train_to_end(run.folder) == "done"
    assert run.status().step == 1
    assert run.status().message.startswith("Reached exact match")


def test_another_workers_run_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.runs.worker.PATIENCE", 0.05)
    run = tiny_run(tmp_path)
    with Lock(run.folder / "lock") as lock:
        assert lock.acquire()
        assert list(advance(run.folder)) == []
    assert run.status().state == "waiting"


def test_what_cannot_be_begun_says_why(tmp_path: Path) -> None:
    spec = tiny_spec()
    without_text = replace(spec, task="characters")
    few_words = replace(spec, model=spec.model.replace(vocab_size=8))
    said = ("text of the run characters-1 is missing", "does not read the task reverse")
    for refused, sentence in zip((without_text, few_words), said, strict=True):
        run = create(tmp_path, refused)
        with pytest.raises(RunError, match=sentence):
            train_to_end(run.folder)
        assert run.status().state == "failed"


def test_what_a_run_writes_is_read_by_its_account_alone(tmp_path: Path) -> None:
    usual = os.umask(0)
    try:
        run = create(tmp_path / "runs", tiny_spec(steps=2), "a text", "a" * 32)
        train_to_end(run.folder)
    finally:
        os.umask(usual)
    files = [tmp_path / "runs", run.folder, *run.folder.rglob("*")]
    assert len(files) > 20
    modes = {path: path.stat().st_mode & 0o777 for path in files}
    assert {path: mode for path, mode in modes.items() if mode & 0o077} == {}


TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def test_two_processes_make_the_updates_of_one_and_save_when_interrupted(tmp_path: Path) -> None:
    """Shares of three and two texts, in parts, with another rate from the second update on.

    By SGD: Adam makes as much of a gradient that is zero but for rounding as of any other.
    """
    spec = tiny_spec(steps=1_000_000, batch_size=5, accumulation=2, optimizer="sgd", lr=0.1)
    spec = replace(spec, model=spec.model.replace(dropout=0.0))
    one, two = (create_in(tmp_path / name, spec) for name in ("one", "two"))
    for run in (one, two):
        run.command("step")
        assert train_to_end(run.folder) == "paused"
        run.change(lr=0.05)
    one.command("resume")
    drive(one, 7)
    command = [sys.executable, *TORCHRUN, "-m", "explorer", "resume", str(two.folder), "--json"]
    threads = os.environ | {"OMP_NUM_THREADS": "1"}
    both = subprocess.Popen(command, cwd=ROOT, env=threads, stderr=subprocess.DEVNULL)
    wait_until(lambda: two.status().step > 8, "the ninth step")
    both.send_signal(signal.SIGTERM)
    both.wait(60)
    assert two.status().state == "interrupted"
    assert two.checkpoint() is not None
    losses = zip(two.metrics().losses()[:8], one.metrics().losses(), strict=True)
    for (step, loss), (of_one, expected) in losses:
        assert step == of_one
        assert abs(loss - expected) <= 1e-5
    seventh = [weights(dict(run.snapshots())[7]) for run in (two, one)]
    torch.testing.assert_close(*seventh, rtol=1e-5, atol=1e-5)


def test_a_disk_that_fills_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    run = tiny_run(tmp_path)
    training = advance(run.folder)
    for _ in range(4):
        next(training)
    with monkeypatch.context() as filled:
        filled.setattr(checkpoint, "save_file", full)
        with pytest.raises(RunError, match="no space left on device"):
            list(training)
    status = run.status()
    assert status.state == "failed"
    assert str(tmp_path) not in status.message
    assert weights(run.latest())
    assert not list(run.folder.rglob(".step-*")), "nothing half-written is left"
    run.command("resume")
    assert train_to_end(run.folder) == "done"
    assert [step for step, _ in run.metrics().losses()] == list(range(1, 13))


def test_a_worker_that_is_killed_while_it_writes_weights_resumes_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed process leaves is what is on the disk, so its folder is copied then."""
    run, whole = tiny_run(tmp_path), tiny_run(tmp_path)
    train_to_end(whole.folder)
    killed, save = Run(tmp_path / "killed" / run.name), checkpoint.save_file

    def save_half(tensors: dict[str, Tensor], path: Path) -> None:
        save(tensors, path)
        if "step-000004" in str(path) and not killed.folder.exists():
            path.write_bytes(path.read_bytes()[:100])
            shutil.copytree(run.folder, killed.folder)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "save_file", save_half)
        drive(run, steps=4)
    assert (killed.status().state, killed.status().steps_per_second) == ("interrupted", 0)
    for _, folder in killed.snapshots():
        load_checkpoint(folder)
    assert train_to_end(killed.folder) == "done"
    assert killed.metrics().losses() == whole.metrics().losses()
    assert end_equally(killed, whole)


@pytest.mark.parametrize("is_new_whole", [True, False])
def test_a_state_between_two_names_is_what_is_left(is_new_whole: bool, tmp_path: Path) -> None:
    """As a process leaves it that is killed between two renames, or while it writes a file."""
    run = tiny_run(tmp_path)
    drive(run, steps=3)
    ((_, state),) = step_folders(run.folder / "state")
    new = state.with_name(f".{state.name}-a_1b2c3d")
    if is_new_whole:
        shutil.copytree(state, new)
    state.rename(new.with_name(f"{new.name}-old"))
    left = run.folder / f".status.json.{'0' * 32}"
    left.touch()
    os.utime(left, (0, 0))
    assert train_to_end(run.folder) == "done"
    assert run.status().step == 12
    assert not [path for path in run.folder.rglob(".*-????????*") if path.is_dir()]
    assert not left.exists()


def test_a_clock_set_back_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never asked: what counts seconds while a run trains only ever goes on."""
    hour, began = 3600.0, time.time()
    backwards = iter(range(1_000_000))
    monkeypatch.setattr(time, "time", lambda: began - hour * next(backwards))
    run = tiny_run(tmp_path)
    assert train_to_end(run.folder) == "done"
    rows = [row.seconds for row in run.metrics().rows if row.seconds is not None]
    assert rows == sorted(rows)
    assert 0 <= run.status().seconds < hour
