"""Models of the Hugging Face hub, or of its cache on this machine when nobody answers."""

from __future__ import annotations

import errno
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError
from huggingface_hub.utils import validate_repo_id

from explorer.catalog import ModelError
from explorer.catalog.folders import MODEL_FILES

LARGEST_DOWNLOAD = 16_000_000_000
READ = list(MODEL_FILES)
"""What is fetched of a model; nothing of subfolders."""
SUBFOLDERS = "*/*"


def is_hub_id(text: str) -> bool:
    """Whether a text could be the ID of a model, such as `openai-community/gpt2`."""
    try:
        validate_repo_id(text)
    except HFValidationError:
        return False
    return text.isprintable()


def fetch_from_hub(hub_id: str) -> Path:
    """The folder of a model in the hub's cache, filled first when the hub can be reached.

    What is there already is not fetched again.
    """
    try:
        return _filled(hub_id)
    except ModelError:
        raise
    except Exception as error:  # of whatever library the hub's own is built on
        if folder := _from_cache(hub_id):
            return folder
        raise ModelError(_why_not(hub_id, error)) from error


def _filled(hub_id: str) -> Path:
    planned = snapshot_download(
        hub_id, allow_patterns=READ, ignore_patterns=SUBFOLDERS, dry_run=True
    )
    size = sum(file.file_size or 0 for file in planned)
    if size > LARGEST_DOWNLOAD:
        raise ModelError(
            f"{hub_id} is {size / 1e9:,.0f} GB, more than the "
            f"{LARGEST_DOWNLOAD / 1e9:,.0f} GB that can be downloaded here."
        )
    return Path(snapshot_download(hub_id, allow_patterns=READ, ignore_patterns=SUBFOLDERS))


def _from_cache(hub_id: str) -> Path | None:
    try:
        folder = Path(
            snapshot_download(
                hub_id, allow_patterns=READ, ignore_patterns=SUBFOLDERS, local_files_only=True
            )
        )
    except (OSError, ValueError):
        return None
    return folder if (folder / "config.json").is_file() else None


def _why_not(hub_id: str, error: Exception) -> str:
    """A plan of what would be fetched fails for the reason it names as its cause."""
    if any(isinstance(each, RepositoryNotFoundError) for each in (error, error.__cause__)):
        return f"There is no folder {hub_id}, and the hub has no public model of that name."
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"There is not enough disk space for {hub_id}; free some and try again."
    return (
        f"There is no folder {hub_id}, the hub cannot be reached, and its cache on this machine "
        "does not contain it."
    )
