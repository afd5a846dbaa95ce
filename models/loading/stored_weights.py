"""The tensors of a folder by name, and how their numbers are read.

A number is read when it is asked for, and never mapped, as safetensors does: whoever may write to
a mapped file kills the process by cutting it short.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

import torch
from torch import Tensor

from models.loading.safe_files import CheckpointError, quoted, regular_file, title

READABLE = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
QUANTIZED = ("F4", "F6_", "F8_", "I8", "U8")
"""The beginnings of types that only quantized weights have."""
LARGEST_NUMBER = 3.4028234663852886e38
"""The largest float32, in which the core calculates."""


class StoredTensor(NamedTuple):
    """The header's entry of one tensor: its file, type, shape, and where it begins."""

    file: str
    dtype: str
    shape: tuple[int, ...]
    start: int = 0


Stamp = tuple[int, int, int]
"""The identity, time and size of a file, which tell whether it changed."""


@dataclass(frozen=True, eq=False)
class Weights:
    """The tensors of a folder by name; no number of them is read yet."""

    folder: Path
    tensors: dict[str, StoredTensor]
    bytes: int
    """Bytes of all tensors in the files."""
    stamps: Mapping[str, Stamp]
    """The stamp of each file when its header was read."""
    wrapper: str = field(default="", kw_only=True)
    """What every name began with in the files, which a compiled, distributed or adapted model
    puts before its own names."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def dtype(self, name: str) -> str:
        return self.tensors[name].dtype

    def file(self, name: str) -> str:
        """The file of the folder that holds it."""
        return self.tensors[name].file

    def check_type(self, name: str) -> None:
        """CheckpointError unless its numbers can be those of a weight."""
        dtype = self.dtype(name)
        if dtype.startswith(QUANTIZED):
            raise CheckpointError(
                f"{quoted(name)} in {title(self.folder)} is quantized ({dtype}), which is not read "
                "here; save the model in float32, float16 or bfloat16."
            )
        if dtype not in READABLE:
            raise CheckpointError(
                f"{quoted(name)} in {title(self.folder)} is of type {dtype}, which no weight has."
            )

    @contextmanager
    def open(self) -> Iterator[Callable[[str], Tensor]]:
        """`read_tensor(name)` gives a tensor as it is stored, in memory of its own."""
        with ExitStack() as stack:
            files: dict[str, BinaryIO] = {}

            def read_tensor(name: str) -> Tensor:
                self.check_type(name)
                shard = self.file(name)
                try:
                    if shard not in files:
                        path = regular_file(self.folder, shard)
                        files[shard] = stack.enter_context(path.open("rb", buffering=0))
                    tensor = self._stored(files[shard].fileno(), self.tensors[name])
                except OSError as error:
                    raise CheckpointError(
                        f"{title(self.folder)} has no readable {quoted(shard)}."
                    ) from error
                self._check_numbers(name, tensor)
                return tensor

            yield read_tensor

    def _stored(self, file: int, stored: StoredTensor) -> Tensor:
        """The numbers of a tensor, of a file that is still the one whose header was read."""
        tensor = torch.empty(stored.shape, dtype=READABLE[stored.dtype], device="cpu")
        is_whole = read_into(file, tensor, stored.start)
        if not is_whole or stamp_of(os.fstat(file)) != self.stamps[stored.file]:
            raise CheckpointError(
                f"{quoted(stored.file)} in {title(self.folder)} changed while it was read; "
                "open it again."
            )
        return tensor

    def _check_numbers(self, name: str, tensor: Tensor) -> None:
        """CheckpointError for NaN and infinity, which would spread to every output of the model."""
        if not tensor.numel():
            return
        least, most = (number.item() for number in tensor.aminmax())
        if not -LARGEST_NUMBER <= least <= most <= LARGEST_NUMBER:
            raise CheckpointError(
                f"{quoted(name)} in {title(self.folder)} holds NaN, infinite or too large numbers, "
                "with which no model calculates."
            )


def stamp_of(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_mtime_ns, status.st_size


def read_into(file: int, tensor: Tensor, start: int) -> bool:
    """Fill a contiguous tensor from the file, from `start` on; False where the file ends before."""
    if not tensor.numel():
        return True
    view = tensor.view(-1).view(torch.uint8).numpy().data
    done = 0
    while done < len(view):
        more = os.preadv(file, [view[done:]], start + done)
        if not more:
            return False
        done += more
    return True
