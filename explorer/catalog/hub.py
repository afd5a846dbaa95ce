"""Models of the Hugging Face hub, or of its cache on this machine when the hub does not answer."""

import errno
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url, snapshot_download
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled, RepositoryNotFoundError
from huggingface_hub.file_download import repo_folder_name

from explorer.catalog import ModelError
from explorer.catalog.folders import files_that_open, is_checkpoint, shards_in
from explorer.system import limits
from explorer.system.atomic_files import check_room
from models.loading.safe_files import INDEX, LARGEST_FILE, CheckpointError, quoted
from models.loading.weight_files import ENDING, PICKLED, open_weights

ANSWERS_WITHIN = 15.0
"""Seconds within which the hub must answer one request."""
LONGEST_HUB_NAME = 120
CONVERTER, CONVERSION = "SFconvertbot", "Adding `safetensors` variant of this model"
"""The hub's bot that converts pickled weights to safetensors, and the title of its pull request."""


@dataclass(frozen=True)
class HubFile:
    name: str
    url: str
    size: int
    sha256: str | None = None
    """The digest of a large file; the hub gives none for a small one."""


@dataclass(frozen=True)
class HubPlan:
    """The commit and the files that open a model. `revision` is None for the main branch."""

    hub_id: str
    commit: str
    revision: str | None
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def fetch_from_hub(hub_id: str) -> Path:
    """The folder of a model in the hub's cache, after fetching the files that it lacks.

    If the hub cannot be reached, this is the folder that is there.
    """
    try:
        plan = plan_download(hub_id)
        check_room(Path(constants.HF_HUB_CACHE), plan.size)
        fetched = snapshot_download(
            hub_id,
            revision=plan.revision,
            allow_patterns=[escape(file.name) for file in plan.files],
        )
        return Path(fetched)
    except ModelError:
        raise
    except Exception as error:  # of whatever library the hub's own is built on
        if folder := cached_folder(hub_id):
            return folder
        fault = f"There is no folder {hub_id}, {why_not(error)}, and its cache on this machine "
        fault += "does not contain it."
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            fault = f"There is not enough disk space for {hub_id}; free some and try again."
        elif isinstance(error, RepositoryNotFoundError):
            fault = f"There is no folder {hub_id}, and {why_not(error)}."
        raise ModelError(fault) from error


def plan_download(hub_id: str) -> HubPlan:
    """The files that open the model: one set of weights, its config and its tokenizer.

    Where the main branch has only pickled weights, the plan takes the hub's own conversion.
    ModelError where no files open a model, or where they are too large; the hub's library raises
    its own errors where the hub cannot be reached.
    """
    plan = _plan(hub_id)
    limits.DOWNLOAD_BYTES.check(plan.size, ModelError)
    return plan


def _plan(hub_id: str, revision: str | None = None) -> HubPlan:
    api = HfApi()
    info = api.model_info(hub_id, revision=revision, files_metadata=True, timeout=ANSWERS_WITHIN)
    commit = str(info.sha)
    files = {
        file.rfilename: HubFile(
            file.rfilename,
            hf_hub_url(hub_id, file.rfilename, revision=commit),
            -1 if file.size is None else file.size,
            file.lfs.sha256 if file.lfs else None,
        )
        for file in info.siblings or ()
        if _is_plain(file.rfilename)
    }
    is_pickled = any(name.endswith(PICKLED) for name in files)
    is_pickled &= not any(name.endswith(ENDING) for name in files)
    if revision is None and is_pickled and (converted := _conversion(api, hub_id)):
        return _plan(hub_id, converted)
    shards: set[str] = set()
    if INDEX in files and 0 <= files[INDEX].size <= LARGEST_FILE[INDEX]:
        index = hf_hub_download(hub_id, INDEX, revision=commit)
        shards = shards_in(Path(index).read_text("utf-8", errors="replace"))
    needed = files_that_open(files.keys(), shards, quoted(hub_id))
    if any(files[name].size < 0 for name in needed):
        raise ModelError(f"{hub_id} has files of which the hub names no size.")
    return HubPlan(hub_id, commit, revision, tuple(files[name] for name in sorted(needed)))


def _is_plain(name: str) -> bool:
    """Whether it names a file in the folder itself and is a valid name on every system."""
    return (
        name.isprintable() and len(name) <= LONGEST_HUB_NAME and not set(name) & set('/\\:*?"<>|')
    )


def _conversion(api: HfApi, hub_id: str) -> str | None:
    """The branch of the hub's own pull request that adds the weights as safetensors."""
    try:
        for post in api.get_repo_discussions(hub_id, author=CONVERTER, discussion_status="open"):
            if post.author == CONVERTER and post.title == CONVERSION and post.is_pull_request:
                return post.git_reference
    except HfHubHTTPError:  # discussions are closed
        return None
    return None


def cached_folder(hub_id: str) -> Path | None:
    """The newest version of a model in the hub's cache on this machine that has its weights."""
    cached = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=hub_id, repo_type="model")
    try:
        versions = sorted((cached / "snapshots").iterdir(), key=lambda path: path.stat().st_mtime)
    except OSError:
        return None
    return next(filter(_has_weights, reversed(versions)), None)


def _has_weights(folder: Path) -> bool:
    try:
        return is_checkpoint(folder) and bool(open_weights(folder).names)
    except CheckpointError:
        return False


def why_not(error: Exception) -> str:
    """Why nothing came from the hub, as a part of a sentence.

    The hub's library may wrap the real reason, which is then the cause of its error.
    """
    causes = (error, error.__cause__)
    if any(isinstance(cause, RepositoryNotFoundError) for cause in causes):
        return "the hub has no public model of that name"
    if any(isinstance(cause, OfflineModeIsEnabled) for cause in causes):
        return "the hub is switched off here by HF_HUB_OFFLINE"
    for cause in causes:
        if isinstance(cause, HfHubHTTPError):
            return f"the hub refused it with HTTP status {cause.response.status_code}"
    return "the hub cannot be reached"
