"""Training in several processes that torchrun has started, each with its share of every batch.

Without such processes there is one, with the whole batch.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import torch
import torch.distributed as dist
from torch import Tensor, nn


@contextmanager
def process_group() -> Iterator[None]:
    """Joins the processes that torchrun has started, where it has started several."""
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
    """The number of this process; process 0 writes."""
    return dist.get_rank() if dist.is_initialized() else 0


def all_reduce(loss: Tensor, parameters: Iterable[nn.Parameter]) -> None:
    """The loss and the gradients of what is trained become their sums over the processes.

    They travel in one message, with zeros where this process has no gradient, so that all
    messages have one length. A gradient that no process has stays None.
    """
    if world_size() == 1:
        return
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    counts = loss.new_tensor([float(p.grad is not None) for p in trained])
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
    values = [loss, counts, *gradients]
    message = torch.cat([value.flatten() for value in values])
    dist.all_reduce(message)
    for value, total in zip(values, message.split([v.numel() for v in values]), strict=True):
        value.copy_(total.view_as(value))
    for parameter, gradient, count in zip(trained, gradients, counts.tolist(), strict=True):
        parameter.grad = gradient if count else None
