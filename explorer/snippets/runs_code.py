"""The lines behind the page Runs: the runs that are compared, their names and their curves."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.runs.run import Run
from explorer.snippets.pass_code import hint, path, script
from explorer.system.data_folders import runs_root


def compared(runs: Sequence[Run]) -> str:
    """Each run by what tells it apart, with its last held-out value. A key is not said."""
    folder = runs[0].folder.parent if runs else runs_root()
    titles = [run.title for run in runs]
    lines = [
        f"folder = Path({path(folder)!r}){hint(folder)}",
        f"runs = [Run(folder / name) for name in {titles!r}]",
        "names = what_differs([run.spec for run in runs], [run.title for run in runs])",
        "curves = {name: run.metrics().values() for name, run in zip(names, runs, strict=True)}",
        "print({name: curve[-1:] for name, curve in curves.items()})",
    ]
    return script(
        lines,
        "from pathlib import Path",
        "from explorer.runs.differing import what_differs",
        "from explorer.runs.run import Run",
    )
