"""Training in several processes that torchrun has started, each with its share of every batch.

Without such processes there is one, with the whole batch.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import torch
import torch.distributed as dist
from torch import Tensor


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


def all_reduce(values: Sequence[Tensor]) -> None:
    """Each value becomes its sum over the processes; all travel in one message."""
    if world_size() > 1:
        message = torch.cat([value.flatten() for value in values])
        dist.all_reduce(message)
        for value, part in zip(values, message.split([v.numel() for v in values]), strict=True):
            value.copy_(part.view_as(value))


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
