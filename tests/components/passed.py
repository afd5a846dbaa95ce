"""A shaken model of every kind and its pass over a text, the same in every process."""

import tempfile
from functools import lru_cache
from pathlib import Path

import torch

from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPass, run_batch_uncached
from tests.analysis.conftest import TEXT, opened_of


@lru_cache
def passed(kind: str) -> tuple[OpenModel, ForwardPass]:
    with tempfile.TemporaryDirectory() as folder:
        opened = opened_of(Path(folder), kind, torch.float32)
    return opened, run_batch_uncached(opened, (TEXT,))[0]
