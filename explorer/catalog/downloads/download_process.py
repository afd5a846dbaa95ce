"""The process that downloads one model for the app, which starts it with the model's name.

It ends when the server that started it does, whose end of its standard input closes then.
"""

import sys
import threading
from contextlib import suppress

from explorer.catalog import ModelError
from explorer.catalog.downloads.background import write_fault, write_progress
from explorer.catalog.downloads.model_download import DownloadProgress, download
from explorer.catalog.real_models import REAL_MODELS
from explorer.system import operating_system
from explorer.system.pace import Pace, Speed

SAID_EVERY = 0.25
"""Seconds between two reports."""


def main(name: str) -> int:
    """Download the model of this name into its folder; 0 when it is there."""
    threading.Thread(target=_end_with_server, daemon=True).start()
    model, pace = REAL_MODELS[name], Pace(SAID_EVERY)
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
            write_progress(model.folder, progress, speed.update(progress.done))

    try:
        download(model, model.folder, report)
    except ModelError as error:
        sys.stdout.write(str(error))
        with suppress(OSError):
            write_fault(model.folder, str(error))
        return 2
    return 0


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    operating_system.end_own_group()


if __name__ == "__main__":
    operating_system.be_nice(5)
    sys.exit(main(sys.argv[1]))
