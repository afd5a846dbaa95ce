"""Training in several processes that torchrun has started, each with its share of every batch.

Without such processes there is one, with the whole batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel


@contextmanager
def joined() -> Iterator[None]:
    """In here this process is one of those that torchrun has started, if it has."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield
        return
    distributed.init_process_group("gloo")
    try:
        yield
        with suppress(RuntimeError):  # where another has ended with an error
            distributed.barrier()  # one that leaves while others talk to it is aborted
    finally:
        distributed.destroy_process_group()


def count() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def rank() -> int:
    """The number of this one; 0 is the one that writes."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def spread(module: nn.Module) -> nn.Module:
    """The same module, whose backward pass leaves the mean gradients of all processes."""
    if count() == 1:
        return module
    return DistributedDataParallel(module, find_unused_parameters=True)


def apart(module: nn.Module) -> AbstractContextManager[None]:
    """In here the backward pass of a module that is spread adds to its own gradients only."""
    return module.no_sync() if isinstance(module, DistributedDataParallel) else nullcontext()


def total(value: Tensor) -> Tensor:
    """The sum over the processes, in each of them."""
    if count() > 1:
        distributed.all_reduce(value)
    return value


def told(values: Sequence[float]) -> list[float]:
    """The values of process 0, in each of them; all give as many."""
    sent = torch.tensor(values, dtype=torch.float64)
    if count() > 1:
        distributed.broadcast(sent, src=0)
    return sent.tolist()


def told_text(text: str) -> str:
    """The text of process 0, in each of them."""
    data = text.encode()
    size = int(told([len(data)])[0])
    return bytes(map(int, told(list(data) if rank() == 0 else [0] * size))).decode()
