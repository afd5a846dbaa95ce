"""Work of the server outside its pages: it loads libraries and models, and removes old files."""

import asyncio
import gc
import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

from explorer.app import streamlit_patches
from explorer.catalog import background_downloads
from explorer.catalog.folders import CLUSTER
from explorer.system.data_folders import runs_root, uploads_root

if TYPE_CHECKING:
    from explorer.runs.cluster import Cluster

log = logging.getLogger("explorer")

TRAINING_DELAY = 3.0
"""Seconds before the training pages are prepared, so that the first page comes first."""
CLEANUP_INTERVAL = 30
"""Seconds."""
PANDAS = "pandas"


class WarmUp:
    """Loads what every page needs while the first reader's browser loads the frame."""

    def __init__(self) -> None:
        self._ends = threading.Event()
        self.thread = threading.Thread(target=self._load, name="warm-up", daemon=True)
        self.cluster: Cluster | None = None

    def _load(self) -> None:
        gc.disable()  # nothing that is loaded here becomes garbage
        try:
            import torch

            import explorer.app.whole_packages  # noqa: F401

            torch.set_num_threads(1)
            from explorer.app.context import open_first

            open_first()
            _freeze()
            if not (runs_root() / CLUSTER).exists():
                self._ends.wait(TRAINING_DELAY)
            from explorer.runs.cluster import cluster

            self.cluster = cluster()
            if self.cluster.was_left:  # otherwise the first reader of a training form starts it
                self.cluster.start()
        except Exception:
            log.exception("The warm-up ended early.")
        # No optimizer is made here, since only the workers train.
        gc.unfreeze()
        gc.collect()
        _freeze()

    def end(self) -> None:
        background_downloads.end_all()
        self._ends.set()
        self.thread.join(timeout=30)
        if self.cluster is not None:
            self.cluster.close()


def _freeze() -> None:
    """Exempt everything that is loaded from garbage collection."""
    gc.freeze()
    # With fifty readers a full collection of 60 ms ran every two seconds; now every fourteen.
    gc.set_threshold(2_000, 10, 25)
    gc.enable()


async def clean_up_forever() -> None:
    """End the sessions of readers who left, and remove files; until the server cancels it."""
    while True:
        await asyncio.sleep(CLEANUP_INTERVAL)
        with _logged_errors():
            streamlit_patches.end_left_sessions()
        await asyncio.to_thread(clean_up)


def clean_up() -> None:
    """Remove results, uploads, runs and texts that nobody has used for long."""
    # These load torch, for which the start of the server does not wait.
    from explorer.catalog import uploads
    from explorer.inference import results_cache
    from explorer.runs import deleting
    from explorer.system import long_texts

    with _logged_errors():
        results_cache.forget_unused()
    with _logged_errors():
        uploads.sweep(uploads_root())
    with _logged_errors():
        deleting.sweep(runs_root())
    with _logged_errors():
        long_texts.sweep()


@contextmanager
def _logged_errors() -> Iterator[None]:
    """Log an error inside, so that the next steps still run."""
    try:
        yield
    except Exception:
        log.exception("What readers left could not be removed.")


class _Partial(ModuleType):
    """A module whose missing attributes wait for the thread that is importing it."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):  # Python asks for these while it makes the module
            import_module(self.__name__)  # at once if it is whole, or if this thread imports it
        return super().__getattribute__(name)


class _PandasFinder(MetaPathFinder):
    """Finds pandas where Python does, and makes it a `_Partial`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == PANDAS else None
        if spec is not None and spec.loader is not None:
            spec.loader.create_module = lambda spec: _Partial(spec.name)  # type: ignore[method-assign]
        return spec


def wait_for_pandas() -> None:
    """From now on no thread sees half of pandas.

    It is imported when a table is first drawn, since it takes 65 MB, and Python shows it to every
    thread from its first line on. Plotly looks for it with each chart, and failed on half of it
    while another reader's first table imported it.
    """
    sys.meta_path.insert(0, _PandasFinder())
