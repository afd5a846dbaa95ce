"""Folders with models on this machine: the name of each model, and the files that open it."""

import hashlib
import os
import re
from collections.abc import Set
from fnmatch import fnmatchcase
from pathlib import Path

from explorer.catalog import ModelError
from explorer.system.data_folders import systems_root, uploads_root
from models.loading.safe_files import ADAPTER_CONFIG, INDEX, CheckpointError, parse_object
from models.loading.weight_files import (
    ADAPTER_WEIGHTS,
    ENDING,
    FOREIGN,
    PICKLED,
    STATE_WEIGHTS,
    WEIGHTS,
    check_adapter,
    only_file,
)

GGUF = ".gguf"
MOST_FOLDERS = 200
UPLOAD = "upload-"
OPENED_PREFIX = "path-"
RUN_KEY = "run-"
KEY = re.compile(
    rf"-({UPLOAD}[0-9a-f]{{24}}|{RUN_KEY}[0-9a-f]{{24}}|{OPENED_PREFIX}[0-9a-f]{{12}})$"
)
CLUSTER = ".cluster.json"
"""The file in the folder of runs that says where the training processes are while they live."""
SEARCHED_FOLDERS = ("", "snapshots/*", "*", "*/snapshots/*")
"""A model, a model in the hub's cache, and folders of either."""


def named_folders() -> list[Path]:
    """The checkpoint folders in the places that EXPLORER_MODELS names, sorted by name."""
    folders = [folder for place in _named_places() for folder in checkpoints_in(place)]
    return list(dict.fromkeys(folders))[:MOST_FOLDERS]


def places_without_models() -> list[str]:
    """The last names of the places that EXPLORER_MODELS names and that hold no model."""
    return [place.name for place in _named_places() if not checkpoints_in(place)]


def _named_places() -> list[Path]:
    named = [place.strip() for place in os.environ.get("EXPLORER_MODELS", "").split(os.pathsep)]
    return [Path(place).expanduser().absolute() for place in named if place]


def checkpoints_in(place: Path) -> list[Path]:
    """The place itself if it is a checkpoint, else the checkpoints in it; also in the hub's cache.

    A folder of several GGUF files holds as many models.
    """
    for pattern in SEARCHED_FOLDERS:
        try:
            folders = sorted(place.glob(pattern)) if pattern else [place]
            models = [model for folder in folders for model in _models_of(folder)]
        except (OSError, ValueError):  # also a name with a NUL byte
            return []
        if models:
            return models[:MOST_FOLDERS]
    return []


def _models_of(place: Path) -> list[Path]:
    """The place if it is a checkpoint; without a config, each of its GGUF files is a model."""
    if not is_checkpoint(place):
        return []
    if (place / "config.json").is_file():
        return [place]
    files = sorted(path for path in place.glob(f"*{GGUF}") if path.is_file())
    return files if len(files) > 1 else [place]


def is_checkpoint(place: Path) -> bool:
    """Whether it is a folder with a config, an adapter or a GGUF file, or is a GGUF file."""
    if place.name.endswith(GGUF):
        return place.is_file()
    names = ("config.json", ADAPTER_CONFIG)
    return any((place / name).is_file() for name in names) or any(place.glob(f"*{GGUF}"))


def model_name(folder: Path) -> str:
    """The folder's name, or in the hub's cache the hub ID.

    The name of an upload ends in the name of the folder around it, which only its owner knows.
    """
    if re.fullmatch(rf"{UPLOAD}[0-9a-f]{{24}}", folder.parent.name):
        return f"{folder.name}-{folder.parent.name}"
    if folder.parent.name == "snapshots":
        hub_id = folder.parent.parent.name.removeprefix("models--").replace("--", "/")
        return hub_id if is_hub_id(hub_id) else folder.name
    return folder.name.removesuffix(GGUF) or "model"


def brought_name(folder: Path) -> str:
    """The name of a folder that a reader brought: no other folder has the same name.

    The name of a folder opened by its path ends in a digest of the path.
    """
    name = model_name(folder)
    if any(folder.is_relative_to(root) for root in (uploads_root(), systems_root())):
        return name
    return f"{name}-{OPENED_PREFIX}{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"


def own_name(name: str) -> str:
    """The name of a model or run on screen and in files: without its key."""
    return KEY.sub("", name)


def is_hub_id(text: str) -> bool:
    """Whether a text could be the ID of a model, such as `openai-community/gpt2`."""
    from huggingface_hub.errors import HFValidationError  # 8 MB that most servers never need
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(text)
    except HFValidationError:
        return False
    return text.isprintable()


MODEL_FILES = (
    "config.json",
    "generation_config.json",
    "*.safetensors",
    "model.safetensors.index.json",
    "run.json",
    ADAPTER_CONFIG,
    "*token*.json",
    "*vocab*.json",
    "*vocab*.txt",
    "merges.txt",
    "*.spm",
    "*.model",
    "chat_template.jinja",
)
"""The files of a model that are fetched or kept: never its code, never pickled weights.

A chat template is rendered only in a sandbox. `run.json` names the task of a model trained here.
"""


def files_that_open(
    names: Set[str], shards: Set[str], called: str, elsewhere: Set[str] = frozenset()
) -> set[str]:
    """The names of a folder's files that open its model, with the weights that the loader chooses.

    `shards` are the files that its index names, `called` is the folder's name in a message,
    `elsewhere` are names in its subfolders, which show why there are no weights here.
    ModelError where none of the files holds the weights.
    """
    try:
        if WEIGHTS in names:
            weights = {WEIGHTS}
        elif INDEX in names:
            weights = {name for name in names & shards if name.endswith(ENDING)}
        else:
            foreign = (name for name in elsewhere if name.endswith(FOREIGN))
            weights = {only_file(sorted([*names, *foreign]), called)}
        check_adapter(names, called)
    except CheckpointError as error:
        raise ModelError(str(error)) from error
    needed = {name for name in names if any(fnmatchcase(name, file) for file in MODEL_FILES)}
    unread = {name for name in needed if name.endswith((ENDING, *PICKLED, *FOREIGN))}
    adapter = names & {ADAPTER_WEIGHTS} if ADAPTER_CONFIG in names else set()
    return needed - unread | weights | adapter - {STATE_WEIGHTS}


def shards_in(index: str) -> set[str]:
    """The files that the text of an index names; none where the index is damaged."""
    try:
        listed = parse_object(index, INDEX).get("weight_map")
    except CheckpointError:
        return set()
    return set(map(str, listed.values())) if isinstance(listed, dict) else set()
