"""The folder on this machine that a typed path or hub ID names."""

import os
from pathlib import Path

from explorer.catalog import ModelError
from explorer.catalog.folders import GGUF, checkpoints_in, is_hub_id
from explorer.system import limits

ALLOW_PATHS = "EXPLORER_FREE_PATH"


def paths_allowed(is_local: bool = False) -> bool:
    """Whether a reader may open any folder of this machine, or fetch a model from the hub.

    Nobody may on a public server. Elsewhere the environment decides, and by default only a reader
    at this machine may.
    """
    if limits.is_public():
        return False
    setting = os.environ.get(ALLOW_PATHS)
    return setting == "1" if setting else is_local


def find_model(place: str, is_local: bool = False) -> Path:
    """The folder of a typed path or hub ID. ModelError says in a sentence why there is none."""
    if not paths_allowed(is_local):
        raise ModelError(
            f"Paths and hub IDs are not allowed; start the app with {ALLOW_PATHS}=1 to allow them."
        )
    place = place.strip()
    if models := checkpoints_in(_typed_folder(place)) if place else []:
        if len(models) > 1:
            raise ModelError(
                f"There are {len(models):,} models in this folder; name one of them, such as "
                f"{models[0].name[:60]}."
            )
        return models[0]
    from explorer.catalog import hub

    if not is_hub_id(place):
        raise ModelError("There is no model folder of that name, and it is not a hub ID either.")
    return hub.fetch_from_hub(place)


def _typed_folder(place: str) -> Path:
    """The folder of a typed path; that of the file if the path names one."""
    try:
        folder = Path(place).expanduser().absolute()
        is_within = folder.is_file() and not folder.name.endswith(GGUF)
        return folder.parent if is_within else folder
    except (OSError, ValueError, RuntimeError):  # an unknown user's home, a NUL byte
        return Path(place)
