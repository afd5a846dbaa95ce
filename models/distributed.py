"""Training in several processes that torchrun has started, each with its share of every batch.

Without such processes there is one, with the whole batch.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


@contextmanager
def process_group() -> Iterator[None]:
    """In here this process is one of those that torchrun has started, if it has."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield
        return
    dist.init_process_group("gloo")
    try:
        yield
        with suppress(RuntimeError):  # where another has ended with an error
            dist.barrier()  # one that leaves while others talk to it is aborted
    finally:
        dist.destroy_process_group()


def world_size() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """The number of this one; 0 is the one that writes."""
    return dist.get_rank() if dist.is_initialized() else 0


def wrap_ddp(module: nn.Module) -> nn.Module:
    """The same module, whose backward pass leaves the mean gradients of all processes."""
    if world_size() == 1:
        return module
    return DistributedDataParallel(module, find_unused_parameters=True)


def no_sync(module: nn.Module) -> AbstractContextManager[None]:
    """In here the backward pass of a wrapped module adds to its own gradients only."""
    return module.no_sync() if isinstance(module, DistributedDataParallel) else nullcontext()


def all_reduce(value: Tensor) -> Tensor:
    """The sum over the processes, in each of them."""
    if world_size() > 1:
        dist.all_reduce(value)
    return value


def broadcast(values: Sequence[float]) -> list[float]:
    """The values of process 0, in each of them; all give as many."""
    sent = torch.tensor(values, dtype=torch.float64)
    if world_size() > 1:
        dist.broadcast(sent, src=0)
    return sent.tolist()


def broadcast_text(text: str) -> str:
    """The text of process 0, in each of them."""
    data = text.encode()
    size = int(broadcast([len(data)])[0])
    return bytes(map(int, broadcast(list(data) if rank() == 0 else [0] * size))).decode()
