"""Folders with models on this machine: the name of each model, and the files that open it."""

import hashlib
import os
import re
from collections.abc import Set
from fnmatch import fnmatchcase
from pathlib import Path

from explorer.catalog import ModelError
from explorer.system.data_folders import systems_root, uploads_root
from models.loading.safe_files import INDEX, CheckpointError, parse_object
from models.loading.weight_files import (
    ENDING,
    FOREIGN,
    PICKLED,
    STATE_WEIGHTS,
    WEIGHTS,
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
"""In the folder of runs, where the processes that train are while they live."""
SEARCHED_FOLDERS = ("", "snapshots/*", "*", "*/snapshots/*")
"""A model, one in the hub's cache, and folders of either."""


def named_folders() -> list[Path]:
    """The checkpoint folders in the places that EXPLORER_MODELS names, sorted by name."""
    found = [folder for place in _named_places() for folder in checkpoints_in(place)]
    return list(dict.fromkeys(found))[:MOST_FOLDERS]


def places_without_models() -> list[str]:
    """The places that EXPLORER_MODELS names and that hold no model, by their last name."""
    return [place.name for place in _named_places() if not checkpoints_in(place)]


def _named_places() -> list[Path]:
    named = [place.strip() for place in os.environ.get("EXPLORER_MODELS", "").split(os.pathsep)]
    return [Path(place).expanduser().absolute() for place in named if place]


def checkpoints_in(place: Path) -> list[Path]:
    """The place itself if it is a checkpoint, else those in it; also as the hub keeps them.

    A folder of several GGUF files holds as many models.
    """
    for pattern in SEARCHED_FOLDERS:
        try:
            folders = sorted(place.glob(pattern)) if pattern else [place]
            found = [model for each in folders for model in _models_of(each)]
        except (OSError, ValueError):  # also a name with a NUL byte
            return []
        if found:
            return found[:MOST_FOLDERS]
    return []


def _models_of(place: Path) -> list[Path]:
    """The place if it is a checkpoint; of several GGUF files without a config each is a model."""
    if not is_checkpoint(place):
        return []
    if (place / "config.json").is_file():
        return [place]
    files = sorted(each for each in place.glob(f"*{GGUF}") if each.is_file())
    return files if len(files) > 1 else [place]


def is_checkpoint(place: Path) -> bool:
    """Whether it is a folder with a config or a GGUF file, or such a file itself."""
    if place.name.endswith(GGUF):
        return place.is_file()
    return (place / "config.json").is_file() or any(place.glob(f"*{GGUF}"))


def model_name(folder: Path) -> str:
    """The folder's name, or the hub ID from which the hub's cache made it.

    That of an upload goes on with the folder around it, which only who brought it knows.
    """
    if re.fullmatch(rf"{UPLOAD}[0-9a-f]{{24}}", folder.parent.name):
        return f"{folder.name}-{folder.parent.name}"
    if folder.parent.name == "snapshots":
        hub_id = folder.parent.parent.name.removeprefix("models--").replace("--", "/")
        return hub_id if is_hub_id(hub_id) else folder.name
    return folder.name.removesuffix(GGUF) or "model"


def brought_name(folder: Path) -> str:
    """The same of a folder that a reader brought: another folder never has the same name.

    That of a folder opened by its path ends in a digest of the path.
    """
    name = model_name(folder)
    if any(folder.is_relative_to(root) for root in (uploads_root(), systems_root())):
        return name
    return f"{name}-{OPENED_PREFIX}{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"


def own_name(name: str) -> str:
    """What a model or run is called on screen and in files: its name without a key."""
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
    "*token*.json",
    "*vocab*.json",
    "*vocab*.txt",
    "merges.txt",
    "*.spm",
    "*.model",
    "chat_template.jinja",
)
"""What opens a model, to be fetched or kept: never its code, never pickled weights.

A chat template is rendered in a sandbox alone. `run.json` says of one that was trained here what
it was trained for.
"""


def files_that_open(
    names: Set[str], shards: Set[str], called: str, elsewhere: Set[str] = frozenset()
) -> set[str]:
    """Of a folder's names those that open its model, as the loader chooses its weights.

    `shards` are the files that its index names, `called` is what a sentence calls the folder,
    `elsewhere` are names of its subfolders, which may say what stands in place of weights.
    ModelError where none of the files holds the weights.
    """
    if WEIGHTS in names:
        weights = {WEIGHTS}
    elif INDEX in names:
        weights = {name for name in names & shards if name.endswith(ENDING)}
    else:
        foreign = (name for name in elsewhere if name.endswith(FOREIGN))
        try:
            weights = {only_file(sorted([*names, *foreign]), called)}
        except CheckpointError as error:
            raise ModelError(str(error)) from error
    known = {name for name in names if any(fnmatchcase(name, each) for each in MODEL_FILES)}
    unread = {name for name in known if name.endswith((ENDING, *PICKLED, *FOREIGN))}
    return known - unread | weights - {STATE_WEIGHTS}


def shards_in(index: str) -> set[str]:
    """The files that the text of an index names; none where it is damaged."""
    try:
        listed = parse_object(index, INDEX).get("weight_map")
    except CheckpointError:
        return set()
    return set(map(str, listed.values())) if isinstance(listed, dict) else set()
