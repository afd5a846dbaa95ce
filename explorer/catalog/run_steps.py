"""The folders of a run that are named after a step, and the newest of them.

snapshots/step-000050     weights at steps 0, 1, 2, 3, 5, 7, 10, 15, 20, … of a training
"""

import re
from pathlib import Path

SNAPSHOTS = "snapshots"
STEP_NAME = re.compile(r"step-(\d{6,12})")


def step_folders(folder: Path) -> list[tuple[int, Path]]:
    """The subfolders called step-000123 with their steps, the smallest step first."""
    try:
        found = [(STEP_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    except OSError:
        return []
    return sorted((int(match[1]), path) for match, path in found if match)


def run_of(checkpoint: Path) -> Path:
    """The folder of the run around a finished model or around one of its snapshots."""
    return checkpoint.parents[1] if checkpoint.parent.name == SNAPSHOTS else checkpoint.parent
