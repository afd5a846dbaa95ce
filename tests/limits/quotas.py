"""Who meets the limits of training: too much for one run, too many runs, a full queue."""

from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.runs import cluster as cluster_module
from explorer.runs import watchdog as watchdog_module
from explorer.runs.cluster import Cluster
from explorer.runs.finetuning import finetune_spec
from explorer.runs.open_run import open_folder
from explorer.runs.parent import task_for
from explorer.runs.run import RunError
from explorer.runs.settings import spec_of
from explorer.runs.sweep import grid
from explorer.runs.watchdog import Watchdog
from explorer.runs.worker import train_to_end
from explorer.tasks import TASKS
from tests.runs.making import tiny_run, tiny_spec
from tests.shelf import shelf

OWNER = "0123456789abcdef" * 2
Meeting = Callable[[Path, pytest.MonkeyPatch], str]


def at_zero(name: str, meet: Callable[[Path], str]) -> Meeting:
    """Meets the limit once it is nothing."""

    def meeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setenv(f"EXPLORER_LIMIT_{name.upper()}", "0")
        return meet(tmp_path)

    return meeting


def of_form(_: Path) -> str:
    """What the form says of these settings."""
    with pytest.raises(RunError) as refused:
        spec_of(TASKS["reverse"], {})
    return str(refused.value)


def of_parent(tmp_path: Path) -> str:
    """What is said of a model to start from."""
    opened = open_folder(shelf(tmp_path) / "letters")
    text = "the cat and the hat " * 300
    with pytest.raises(RunError) as refused:
        finetune_spec(opened, task_for(opened, "subwords", text), {})
    return str(refused.value)


def of_sweep(_: Path) -> str:
    """What the page says of settings with too many values."""
    with pytest.raises(RunError) as refused:
        grid(TASKS["reverse"], {"seed": range(2)})
    return str(refused.value)


def of_start(root: Path) -> str:
    """What the page says of another run."""
    with pytest.raises(RunError) as refused:
        Cluster(root).train_new(tiny_spec(), None, OWNER, OWNER)
    assert not list(root.glob("reverse*")), "nothing is left of it"
    return str(refused.value)


def of_queue(name: str) -> Meeting:
    """The same, where the processes that train have nothing to do."""

    def meeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setattr(Cluster, "connect", lambda _: None)
        monkeypatch.setattr(cluster_module, "_keys", lambda _: [])
        return at_zero(name, of_start)(tmp_path, monkeypatch)

    return meeting


def of_status(root: Path) -> str:
    """What the page says of a run that was stopped, which can resume from its state."""
    run = tiny_run(root)
    assert train_to_end(run.folder) == "stopped"
    assert (run.folder / "state" / "step-000000").is_dir()
    assert run.status().can_resume
    return run.status().message


def of_long_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its process ends; the next one that is given the run leaves it as it is."""
    monkeypatch.setenv("EXPLORER_LIMIT_STEP_SECONDS", "0")
    ended: list[bool] = []
    monkeypatch.setattr(watchdog_module, "end_process", lambda: ended.append(True))
    run = tiny_run(tmp_path)
    Watchdog(run).watch()
    assert ended == [True]
    assert train_to_end(run.folder) == "stopped"
    assert run.metrics().rows == []
    return run.status().message


def of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_RUN_MEMORY", "1000000")
    run = tiny_run(tmp_path, batch_size=4096)
    assert train_to_end(run.folder) == "stopped"
    return run.status().message


KEPT = ("runs_of_reader", "runs_kept", "runs_bytes", "runs_bytes_of_reader")
MEETINGS: dict[str, Callable[..., str]] = {
    **{name: at_zero(name, of_form) for name in ("run_parameters", "run_steps")},
    **{name: of_queue(name) for name in (*KEPT, "queue_of_reader", "queue", "network_share")},
    **{name: at_zero(name, of_status) for name in ("run_seconds", "run_bytes")},
    "parent_parameters": at_zero("parent_parameters", of_parent),
    "sweep_runs": at_zero("sweep_runs", of_sweep),
    "step_seconds": of_long_step,
    "run_memory": of_memory,
}
