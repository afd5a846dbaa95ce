"""Downloads in the background: one process for each model, however many readers ask for it.

The process ends with the server, and the bytes that it has fetched stay. It writes its progress
into its folder, so that any page, even after a reload, and any other server can show it.
"""

import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Literal

from explorer.catalog import ModelError
from explorer.catalog.model_download import (
    LOCK,
    DownloadProgress,
    download,
    fetched_bytes,
    make_part_folder,
    part_folder,
)
from explorer.catalog.pretrained_models import PRETRAINED_MODELS, PretrainedModel
from explorer.system import operating_system
from explorer.system.atomic_files import is_held, read_json_or_empty, write_json
from explorer.system.data_folders import ROOT
from explorer.system.pace import Pace, Speed

STATE_FILE = "progress.json"
ENDS_WITHIN = 10.0
"""Seconds within which a process must end."""


@dataclass(frozen=True)
class DownloadState:
    """`there`: the model can be opened. `absent`: an earlier try may have left a part of it."""

    kind: Literal["absent", "running", "there"]
    progress: DownloadProgress | None = None
    left: int = 0
    """Bytes that an earlier try left."""
    fault: str = ""
    """Why the last try ended, in a sentence; empty if a reader ended it."""
    is_ours: bool = True
    """Whether this server can end it."""

    @property
    def seconds_left(self) -> float | None:
        """Seconds until everything is fetched; None where that is not known yet."""
        if self.progress is None or self.progress.phase != "fetching" or not self.progress.speed:
            return None
        return max(self.progress.total - self.progress.done, 0) / self.progress.speed


_lock = RLock()
_processes: dict[Path, subprocess.Popen[bytes]] = {}
_cancelled: set[Path] = set()
_last_words: dict[Path, str] = {}
"""The output of each process that has ended; empty if it was killed."""


def start(model: PretrainedModel) -> None:
    """Start or resume the download of a model, unless it is there or being downloaded."""
    with _lock:
        if state_of(model).kind != "absent":
            return
        folder = model.folder
        _cancelled.discard(folder)
        _last_words.pop(folder, None)
        with suppress(OSError, ModelError):  # the process reports what is wrong with the folder
            (make_part_folder(folder) / STATE_FILE).unlink()
        _processes[folder] = subprocess.Popen(
            [sys.executable, "-m", "explorer.catalog.background_downloads", model.name],
            cwd=ROOT,
            stdin=subprocess.PIPE,  # closed when this server ends, in whatever way
            stdout=subprocess.PIPE,  # its last words
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=operating_system.OWN_GROUP,
        )


def cancel(model: PretrainedModel) -> None:
    """End the download of a model; the fetched bytes are kept for the next try."""
    with _lock:
        process = _processes.get(model.folder)
        if process is None or process.poll() is not None:
            return
        _cancelled.add(model.folder)
    _end(process)


def end_all() -> None:
    with _lock:
        processes = list(_processes.values())
    for process in processes:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started. The lock is free, so others can ask its state."""
    for at_once, patience in ((False, ENDS_WITHIN), (True, None)):
        with suppress(ProcessLookupError):
            if process.poll() is None:
                operating_system.end_group(process, at_once=at_once)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def state_of(model: PretrainedModel) -> DownloadState:
    """Whether a model is there, and the progress of its download."""
    folder = model.folder
    with _lock:
        process = _processes.get(folder)
        is_ours = process is not None and process.poll() is None
    if model.is_there and not is_ours:
        return DownloadState("there")
    part = part_folder(folder)
    if is_ours or is_held(part / LOCK):
        try:
            progress = DownloadProgress.from_dict(read_json_or_empty(part / STATE_FILE))
        except ValueError:
            progress = DownloadProgress("asking", 0, model.download)
        return DownloadState("running", progress, is_ours=is_ours)
    if model.is_there:  # the download ended meanwhile
        return DownloadState("there")
    fault = "" if folder in _cancelled else _fault(model, process)
    left = min(fetched_bytes(folder), model.download)
    return DownloadState("absent", left=left, fault=fault)


def _fault(model: PretrainedModel, process: subprocess.Popen[bytes] | None) -> str:
    """Why the last try ended: as our process printed it, or as another wrote it in the folder."""
    if process is None:
        return str(read_json_or_empty(part_folder(model.folder) / STATE_FILE).get("fault", ""))
    with _lock:
        if model.folder not in _last_words:
            assert process.stdout is not None
            _last_words[model.folder] = process.stdout.read().decode().strip()
    if process.returncode and not _last_words[model.folder]:
        return f"The download of {model.title} ended unexpectedly; try again, and it goes on."
    return _last_words[model.folder]


REPORT_EVERY = 0.25
"""Seconds between two reports."""


def main(name: str) -> int:
    """Download the model of this name into its folder; returns 0 when it is there."""
    threading.Thread(target=_end_with_server, daemon=True).start()
    model, pace = PRETRAINED_MODELS[name], Pace(REPORT_EVERY)
    speed: Speed | None = None
    phase = ""

    def report(progress: DownloadProgress) -> None:
        nonlocal speed, phase
        if progress.phase == phase and not pace.is_due():
            return
        if progress.phase != phase:
            speed, phase = Speed(progress.done), progress.phase
        with pace.timed():
            assert speed is not None
            now = progress.replace(speed=speed.update(progress.done))
            write_json(part_folder(model.folder) / STATE_FILE, now.to_dict())

    try:
        download(model, model.folder, report)
    except ModelError as error:
        sys.stdout.write(str(error))
        with suppress(OSError, ModelError):  # for servers that did not start this process
            write_json(make_part_folder(model.folder) / STATE_FILE, {"fault": str(error)})
        return 2
    return 0


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    operating_system.end_own_group()


if __name__ == "__main__":
    operating_system.be_nice(5)
    sys.exit(main(sys.argv[1]))
