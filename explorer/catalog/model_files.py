"""Which of a folder's files open its model: one set of weights, and what stands beside it."""

from collections.abc import Set
from fnmatch import fnmatchcase

from explorer.catalog import ModelError
from models.loading.safe_files import INDEX, CheckpointError, parse_object
from models.loading.weight_files import (
    ENDING,
    FOREIGN,
    PICKLED,
    STATE_WEIGHTS,
    WEIGHTS,
    only_file,
)

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
