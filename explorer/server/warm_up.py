"""What is loaded before the first visitor comes, and the orderly end of what runs beside pages."""

from __future__ import annotations

import gc
import logging
import threading
from typing import TYPE_CHECKING

from explorer.catalog.downloads import background
from explorer.catalog.folders import CLUSTER
from explorer.system.data_folders import runs_root

if TYPE_CHECKING:
    from explorer.runs.cluster import Cluster

log = logging.getLogger("explorer")


LATER = 3.0
"""Seconds after which the pages of training are prepared: not beside the first page of all."""


class WarmUp:
    """Loads what every page needs while the first visitor's browser loads the frame."""

    def __init__(self) -> None:
        self._ends = threading.Event()
        self.thread = threading.Thread(target=self._load, name="warm-up", daemon=True)
        self.cluster: Cluster | None = None

    def _load(self) -> None:
        gc.disable()  # while there is only what stays
        try:
            import torch

            torch.set_num_threads(1)
            from explorer.app.context import open_first
            from explorer.system import cooperative
            from explorer.text import library_training

            library_training.wait_by(cooperative.step, cooperative.offload)
            open_first()
            _keep_what_there_is()
            if not (runs_root() / CLUSTER).exists():
                self._ends.wait(LATER)
            from explorer.runs.cluster import cluster

            self.cluster = cluster()
            if self.cluster.was_left:  # otherwise the first who sees a form to train with starts it
                self.cluster.start()
        except Exception:
            log.exception("The warm-up ended early.")
        # No optimizer is made here, since only the workers train.
        gc.unfreeze()
        gc.collect()
        _keep_what_there_is()

    def end(self) -> None:
        background.end_all()
        self._ends.set()
        self.thread.join(timeout=30)
        if self.cluster is not None:
            self.cluster.close()


def _keep_what_there_is() -> None:
    """Nothing that was loaded is garbage: it is not searched through after every run."""
    gc.freeze()
    # Fifty readers set off a whole collection, 60 ms, every two seconds; now one in fourteen.
    gc.set_threshold(2_000, 10, 25)
    gc.enable()
