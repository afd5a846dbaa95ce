"""Good folders to be damaged, the process that opens them, and a way to leave shapes unchecked."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from models import save_checkpoint
from tests.models.loading.opening import Opener
from tests.tiny import SMALL, export_gpt2, shaken


@pytest.fixture(scope="session")
def good_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of ours, one of a published family."""
    root = tmp_path_factory.mktemp("good")
    save_checkpoint(root / "ours", shaken(SMALL, torch.float32), tokenizer="{}", run={"a": 1})
    export_gpt2(root / "gpt2")
    return root


@pytest.fixture(scope="session")
def opener(good_folders: Path) -> Iterator[Opener]:
    process = Opener(good_folders / "gpt2")
    yield process
    process.close()


@pytest.fixture
def ours(good_folders: Path, tmp_path: Path) -> Path:
    """A sound folder of ours that may be damaged."""
    return Path(shutil.copytree(good_folders / "ours", tmp_path / "one"))


@pytest.fixture
def gpt2(good_folders: Path, tmp_path: Path) -> Path:
    """A sound folder of a GPT-2 that may be damaged."""
    return Path(shutil.copytree(good_folders / "gpt2", tmp_path / "one"))
