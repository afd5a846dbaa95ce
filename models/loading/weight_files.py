"""The tensors of a folder, in one safetensors file or in many, as far as they can be trusted.

Names, types and shapes come from the headers, which safetensors checks: the tensors must
fill the file without a gap. A number is read when it is asked for. Pickled weights are
refused, since opening them can run code.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open
from torch import Tensor

from models.loading.gguf_header import gguf_file, only_gguf, read_gguf_header
from models.loading.memory import available_memory
from models.loading.safe_files import (
    INDEX,
    POINTER,
    CheckpointError,
    is_there,
    pointer_fault,
    read_json,
    regular_file,
    shown,
    title,
)

WEIGHTS, STATE_WEIGHTS, ENDING = "model.safetensors", "state.safetensors", ".safetensors"
READABLE = ("F64", "F32", "F16", "BF16")
QUANTIZED = ("F4", "F6_", "F8_", "I8", "U8")
"""How the names of types begin that only quantized weights have."""
LARGEST_NUMBER = 3.4028234663852886e38
"""The largest of 32 bits, in which the core calculates."""
LONGEST_HEADER, MOST_TENSORS = 4 << 20, 10_000
"""Bytes of all headers of a folder, and tensors: several times what any model needs."""
MOST_AXES, LONGEST_AXIS = 8, 1 << 40
"""More than any model has, and few enough for torch to represent."""
MOST_SHARDS = 1_000
MOST_ENTRIES = 10_000
"""Files of a folder that are listed where none has the expected name."""
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
PICKLES = (b"PK\x03\x04", *(bytes((0x80, version)) for version in range(2, 6)))
"""How an archive of pickles or a single one starts."""
FOREIGN = (".h5", ".msgpack", ".onnx", ".ggml", ".npz", ".tflite")


class Stored(NamedTuple):
    """What a header says of one tensor, and the file that it is in."""

    file: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Weights:
    """The tensors of a folder by name, of which no number is read yet."""

    folder: Path
    tensors: dict[str, Stored]
    bytes: int
    """What all tensors take in the files."""

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
                f"{shown(name)} in {title(self.folder)} is quantized ({dtype}), which is not read "
                "here; save the model in float32, float16 or bfloat16."
            )
        if dtype not in READABLE:
            raise CheckpointError(
                f"{shown(name)} in {title(self.folder)} is of type {dtype}, which no weight has."
            )

    @contextmanager
    def open(self) -> Iterator[Callable[[str], Tensor]]:
        """`read(name)` gives a tensor as it is stored, to be copied while this is open."""
        with ExitStack() as stack:
            files: dict[str, Any] = {}

            def read(name: str) -> Tensor:
                self.check_type(name)
                shard = self.file(name)
                try:
                    if shard not in files:
                        path = regular_file(self.folder, shard)
                        files[shard] = stack.enter_context(safe_open(path, framework="pt"))
                    dtype = files[shard].get_slice(name).get_dtype()
                    tensor: Tensor = files[shard].get_tensor(name)
                except (SafetensorError, OSError, RuntimeError) as error:
                    raise CheckpointError(
                        f"{shown(shard)} in {title(self.folder)} is damaged or cut short."
                    ) from error
                if (dtype, tuple(tensor.shape)) != (self.dtype(name), self.shape(name)):
                    raise CheckpointError(
                        f"{shown(shard)} in {title(self.folder)} changed while it was read; "
                        "open it again."
                    )
                self._check_numbers(name, tensor)
                return tensor

            yield read

    def _check_numbers(self, name: str, tensor: Tensor) -> None:
        """One number that is none makes every answer of a model none."""
        if not tensor.numel():
            return
        least, most = (number.item() for number in tensor.aminmax())
        if not -LARGEST_NUMBER <= least <= most <= LARGEST_NUMBER:
            raise CheckpointError(
                f"{shown(name)} in {title(self.folder)} holds NaN, infinite or too large numbers, "
                "with which no model calculates."
            )


def open_weights(folder: str | Path) -> Weights:
    """The weights of a folder or GGUF file, known by their headers alone."""
    folder = Path(folder)
    if (file := gguf_file(folder)) is not None:
        from models.loading.gguf_weights import gguf_weights  # which needs this module

        return gguf_weights(read_gguf_header(file))
    if is_there(folder, WEIGHTS):
        return open_file(folder, WEIGHTS)
    if is_there(folder, INDEX):
        return _open_shards(folder)
    return open_file(folder, _only_file(folder))


def open_file(folder: Path, name: str) -> Weights:
    """The weights in one safetensors file."""
    tensors, length, size = read_header(folder, name)
    return Weights(folder, dict(sorted(tensors.items())), size - length)


def read_header(
    folder: Path, name: str, longest: int = LONGEST_HEADER
) -> tuple[dict[str, Stored], int, int]:
    """The tensors of one file by name, the length of its header and the size of the file."""
    path = regular_file(folder, name)
    what = f"{shown(name)} in {title(folder)}"
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise CheckpointError(f"{title(folder)} has no readable {shown(name)}.") from error
    length = 8 + int.from_bytes(start[:8], "little")
    if length > size:
        raise CheckpointError(_no_header(folder, name, start))
    if length > longest:
        raise CheckpointError(f"The header of {what} is too long to be one.")
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            if len(names) > MOST_TENSORS:
                raise CheckpointError(f"{what} holds more than {MOST_TENSORS:,} tensors.")
            slices = {tensor: file.get_slice(tensor) for tensor in names}
            tensors = {
                tensor: Stored(name, one.get_dtype(), tuple(one.get_shape()))
                for tensor, one in slices.items()
            }
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{what} is damaged or cut short.") from error
    except RuntimeError as error:  # the system refuses to map so large a file
        raise CheckpointError(
            f"{what} needs {size / 1e9:,.0f} GB of memory, more than the "
            f"{available_memory() / 1e9:,.0f} GB there are."
        ) from error
    for tensor, stored in tensors.items():
        if len(stored.shape) > MOST_AXES or max(stored.shape, default=0) > LONGEST_AXIS:
            raise CheckpointError(f"{shown(tensor)} in {what} has a shape that no weight has.")
    return tensors, length, size


def _no_header(folder: Path, name: str, start: bytes) -> str:
    """What the file is instead, by its first bytes. Read as a length, each of these is absurd."""
    what = f"{shown(name)} in {title(folder)}"
    if not start:
        return f"{what} is empty; fetch or save it again."
    if start.startswith(POINTER):
        return pointer_fault(folder, name)
    if start.lstrip()[:1] == b"<":
        return f"{what} is a web page in place of the file; fetch it again."
    if start.startswith(PICKLES):
        return f"{what} is pickled, which can run code when it is opened; save it as safetensors."
    return f"{what} is damaged or cut short."


def _open_shards(folder: Path) -> Weights:
    """The weights in all files that the index names. What it says must be so, each tensor once."""
    listed = read_json(folder, INDEX).get("weight_map")
    what = f"{INDEX} in {title(folder)}"
    if not isinstance(listed, dict) or not listed:
        raise CheckpointError(f"{what} has no weight_map that names a file for each weight.")
    files = list(dict.fromkeys(name if isinstance(name, str) else "" for name in listed.values()))
    if len(files) > MOST_SHARDS:
        raise CheckpointError(f"{what} names more than {MOST_SHARDS:,} files.")
    for name in files:
        _check_shard_name(folder, name)
    missing = [name for name in files if not is_there(folder, name)]
    if missing:
        raise CheckpointError(
            f"{title(folder)} lacks {len(missing)} of the {len(files)} files of its weights, "
            f"first {shown(missing[0])}."
        )
    found: dict[str, Stored] = {}
    left, total = LONGEST_HEADER, 0
    for file in files:
        tensors, length, size = read_header(folder, file, left)
        left -= length
        total += size - length
        if twice := next((name for name in tensors if name in found), None):
            raise CheckpointError(
                f"{shown(twice)} is in {shown(file, 40)} and in {shown(found[twice].file, 40)} of "
                f"{title(folder)}, so which one counts is not known."
            )
        found |= tensors
        if len(found) > MOST_TENSORS:
            raise CheckpointError(f"{title(folder)} holds more than {MOST_TENSORS:,} tensors.")
    for name, file in listed.items():
        if name not in found or found[name].file != file:
            raise CheckpointError(
                f"{shown(file)} in {title(folder)} lacks {shown(name)}, which the index puts there."
            )
    return Weights(folder, dict(sorted(found.items())), total)


def _check_shard_name(folder: Path, name: str) -> None:
    if not name or len(name) > 255 or not name.isprintable():
        raise CheckpointError(f"{INDEX} in {title(folder)} names a file by no file name.")
    if "/" in name or "\\" in name or name in (".", ".."):
        raise CheckpointError(f"{INDEX} in {title(folder)} names a file outside the folder.")
    if not name.endswith(ENDING):
        raise CheckpointError(
            f"{INDEX} in {title(folder)} names {shown(name)}, which is no safetensors file."
        )


def _only_file(folder: Path) -> str:
    try:
        names = sorted(path.name for path in islice(folder.iterdir(), MOST_ENTRIES))
    except OSError as error:
        raise CheckpointError(f"There is no readable folder {title(folder)}.") from error
    return only_file(names, title(folder))


def only_file(names: Sequence[str], folder: str) -> str:
    """The one safetensors or GGUF file of any name, or the reason why nothing can be read.

    `names` are those of the folder's files, and `folder` is what a sentence calls it.
    """
    found = [name for name in names if name.endswith(ENDING) and name != STATE_WEIGHTS]
    if len(found) > 1:
        raise CheckpointError(
            f"{folder} holds several safetensors files and no {INDEX} that says which "
            "belong together."
        )
    if "adapter_config.json" in names or found == ["adapter_model.safetensors"]:
        raise CheckpointError(
            f"{folder} holds an adapter, which is no model; merge it into its model first."
        )
    if found:
        return found[0]
    if (file := only_gguf(names, folder)) is not None:
        return file
    if any(name.endswith(PICKLED) for name in names):
        raise CheckpointError(
            f"{folder} holds pickled weights, which can run code when they are opened; "
            f"save them as {WEIGHTS} instead."
        )
    if foreign := next((name for name in names if name.endswith(FOREIGN)), None):
        raise CheckpointError(
            f"{folder} holds its weights as {shown(foreign)}, a format that is not read "
            f"here; save them as {WEIGHTS} instead."
        )
    raise CheckpointError(f"{folder} has no {WEIGHTS}.")
