"""What every test starts from: shapes are checked, and torch keeps to one thread."""

from __future__ import annotations

import os

import torch

if not os.environ.get("EXPLORER_MEASURING"):
    # Every shape written in a signature of `models` is checked on every call. A
    # benchmark runs in a process of its own without this (tests/benchmarks/conftest.py).
    from jaxtyping import install_import_hook

    from tests import checking

    install_import_hook("models", f"{checking.__name__}.check")

torch.set_num_threads(1)
