"""A folder of GPT-2's small size with random weights, and both libraries' model of it."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import torch

from models import Transformer, load_checkpoint

TITLE = "GPT-2 small"
VOCABULARY = 50_257
LAYERS = HEADS = 12


@cache
def folder(positions: int = 1024) -> Path:
    """The reference library saves it; the folder goes with the process."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    made = Path(mkdtemp(prefix="gpt2-small-"))
    atexit.register(rmtree, made, ignore_errors=True)
    config = transformers.GPT2Config(n_positions=positions)
    transformers.GPT2LMHeadModel(config).save_pretrained(made)
    return made


def reference() -> Any:
    """The reference library's model, with attention that gives its weights."""
    import transformers

    torch.set_num_threads(1)
    model = transformers.GPT2LMHeadModel.from_pretrained(folder(), attn_implementation="eager")
    return model.eval()


def ours(positions: int = 1024) -> Transformer:
    torch.set_num_threads(1)
    return load_checkpoint(folder(positions)).model


def ids(tokens: int) -> torch.Tensor:
    return torch.randint(VOCABULARY, (1, tokens), generator=torch.Generator().manual_seed(0))


def peak_bytes(work: Callable[[], object]) -> int:
    """How far the memory of this process rises above where it stands before the work.

    Memory that earlier work left behind is given back first, or the rise would hide in it.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest level so far
    before = _status("VmRSS")
    kept = work()
    peak = _status("VmHWM") - before
    del kept
    return peak


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))
