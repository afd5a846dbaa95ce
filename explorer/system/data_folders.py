"""The folders of the app on this machine; most can be set by an environment variable."""

import os
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"site-packages", "dist-packages"}


def shipped_root() -> Path:
    return Path(os.environ.get("EXPLORER_CHECKPOINTS") or ROOT / "models" / "checkpoints")


@cache
def data_root() -> Path:
    """The files that the app makes: its own folder, or the user's if it was installed."""
    if ROOT.parent.name not in PACKAGES:
        return ROOT
    from platformdirs import user_data_path

    return user_data_path("attention-explorer", appauthor=False)


def examples_root() -> Path:
    """Downloaded models."""
    return Path(os.environ.get("EXPLORER_EXAMPLES") or data_root() / "examples")


def recorded_root() -> Path:
    """The training runs that come with the app, which nobody changes."""
    return Path(os.environ.get("EXPLORER_RECORDED") or ROOT / "models" / "runs")


def runs_root() -> Path:
    return Path(os.environ.get("EXPLORER_RUNS") or data_root() / "runs")


def uploads_root() -> Path:
    """Uploaded models, which are removed after a while."""
    return runs_root() / ".uploads"


def systems_root() -> Path:
    """The museum's untrained systems, which the app makes itself."""
    return runs_root() / ".systems"


def activations_root() -> Path:
    """Activations of heads on lines of readers' texts, without the texts."""
    return runs_root() / ".activations"


def texts_root() -> Path:
    """Texts that are too long for an address."""
    return runs_root() / ".texts"
