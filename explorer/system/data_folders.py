"""Where the app keeps its files on this machine; each folder can be named by a variable."""

import os
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"site-packages", "dist-packages"}


def shipped_root() -> Path:
    """Where the models that come with the app are kept."""
    return Path(os.environ.get("EXPLORER_CHECKPOINTS") or ROOT / "models" / "checkpoints")


@cache
def data_root() -> Path:
    """Where the app keeps what it makes: its own folder, or the user's where it was installed."""
    if ROOT.parent.name not in PACKAGES:
        return ROOT
    from platformdirs import user_data_path

    return user_data_path("attention-explorer", appauthor=False)


def examples_root() -> Path:
    """Where downloaded examples are kept."""
    return Path(os.environ.get("EXPLORER_EXAMPLES") or data_root() / "examples")


def runs_root() -> Path:
    """Where training runs are kept."""
    return Path(os.environ.get("EXPLORER_RUNS") or data_root() / "runs")


def uploads_root() -> Path:
    """Where uploaded models are kept for a while."""
    return runs_root() / ".uploads"


def systems_root() -> Path:
    """Where the museum's untrained systems are kept, which the app makes itself."""
    return runs_root() / ".systems"


def activations_root() -> Path:
    """Where it is kept how much the lines of readers' texts excite heads, without the texts."""
    return runs_root() / ".activations"


def texts_root() -> Path:
    """Where texts are kept that are too long for an address."""
    return runs_root() / ".texts"
