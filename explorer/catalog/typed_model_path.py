"""Which folder of this machine a typed path or hub ID stands for."""

import os
from pathlib import Path

from explorer.catalog import ModelError
from explorer.catalog.folders import GGUF, checkpoints_in, is_hub_id
from explorer.system import limits

ALLOW_PATHS = "EXPLORER_FREE_PATH"


def paths_allowed(is_local: bool = False) -> bool:
    """Whether a reader may name any folder of this machine, or have one fetched from the hub.

    Unless whoever starts the app says so or not, only a reader on this very machine may; nobody
    on a public server.
    """
    if limits.is_public():
        return False
    said = os.environ.get(ALLOW_PATHS)
    return said == "1" if said else is_local


def find_model(place: str, is_local: bool = False) -> Path:
    """The folder of a typed path or hub ID. ModelError says in a sentence why there is none."""
    if not paths_allowed(is_local):
        raise ModelError(
            f"Paths and hub IDs are not allowed; start the app with {ALLOW_PATHS}=1 to allow them."
        )
    place = place.strip()
    if found := checkpoints_in(_typed_folder(place)) if place else []:
        if len(found) > 1:
            raise ModelError(
                f"There are {len(found):,} models in this folder; name one of them, such as "
                f"{found[0].name[:60]}."
            )
        return found[0]
    from explorer.catalog import hub

    if not is_hub_id(place):
        raise ModelError("There is no model folder of that name, and it is not a hub ID either.")
    return hub.fetch_from_hub(place)


def _typed_folder(place: str) -> Path:
    """The folder of a typed path, also where it was that of a file in it."""
    try:
        folder = Path(place).expanduser().absolute()
        is_within = folder.is_file() and not folder.name.endswith(GGUF)
        return folder.parent if is_within else folder
    except (OSError, ValueError, RuntimeError):  # an unknown user's home, a NUL byte
        return Path(place)
