"""The package as somebody installs it: the wheel, unpacked where Python finds it."""

import sys
import zipfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from tests.source import ROOT

ENTRY = (
    "import sys; from importlib.metadata import entry_points; "
    "found = entry_points(group='console_scripts', name='attention-explorer'); "
    "sys.exit([*found][0].load()())"
)
"""What the command does that an installer writes."""
COMMAND = [sys.executable, "-c", ENTRY]


def built_wheel(folder: Path) -> Path:
    """The wheel, in this folder."""
    return Path(next(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])))


def installed(wheel: Path, folder: Path) -> Path:
    """Where the wheel lies unpacked: a folder for PYTHONPATH."""
    packages = folder / "site-packages"
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(packages)
    return packages
