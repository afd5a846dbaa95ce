"""The numbers of a folder, in one safetensors file or in many, as far as they can be trusted.

Names, types and shapes come from the headers, which `headers` has checked; a number is read
when it is asked for. Pickled weights are refused, since opening them can run code.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from models.loading.files import (
    INDEX,
    CheckpointError,
    is_there,
    read_json,
    regular_file,
    shown,
    title,
)
from models.loading.headers import BITS, LONGEST_HEADER, MOST_TENSORS, Stored, read_header

WEIGHTS, STATE_WEIGHTS, ENDING = "model.safetensors", "state.safetensors", ".safetensors"
READABLE = ("F64", "F32", "F16", "BF16")
QUANTIZED = tuple(name for name, bits in BITS.items() if bits <= 8 and name != "BOOL")
LARGEST_NUMBER = 3.4028234663852886e38
"""The largest of 32 bits, in which the core calculates."""
MOST_SHARDS = 1_000
MOST_ENTRIES = 10_000
"""Files of a folder that are looked at where none has the expected name."""
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
FOREIGN = (".h5", ".msgpack", ".onnx", ".gguf", ".ggml", ".npz", ".tflite")


@dataclass(frozen=True, eq=False)
class Weights:
    """The tensors of a folder by name, of which no number is read yet."""

    folder: Path
    tensors: dict[str, Stored]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.tensors)

    @property
    def bytes(self) -> int:
        """What all tensors take in the files."""
        return sum(stored.end - stored.begin for stored in self.tensors.values())

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
        if dtype in QUANTIZED:
            raise CheckpointError(
                f"{shown(name)} in {title(self.folder)} is quantized ({dtype}), which is not read "
                "here; save the model in float32, float16 or bfloat16."
            )
        if dtype not in READABLE:
            raise CheckpointError(
                f"{shown(name)} in {title(self.folder)} is of type {dtype}, which no weight has."
            )

    @contextmanager
    def forward(self) -> Iterator[Callable[[str], Tensor]]:
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
    """The weights of a folder, known by their headers alone."""
    folder = Path(folder)
    if is_there(folder, WEIGHTS):
        return open_file(folder, WEIGHTS)
    if is_there(folder, INDEX):
        return _open_shards(folder)
    return open_file(folder, _only_file(folder))


def open_file(folder: Path, name: str) -> Weights:
    """The weights in one safetensors file."""
    return Weights(folder, dict(sorted(read_header(folder, name)[0].items())))


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
    left = LONGEST_HEADER
    for file in files:
        tensors, used = read_header(folder, file, left)
        left -= used
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
    return Weights(folder, dict(sorted(found.items())))


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
    """The one safetensors file of another name, or the reason why nothing can be read."""
    try:
        names = sorted(path.name for path in islice(folder.iterdir(), MOST_ENTRIES))
    except OSError as error:
        raise CheckpointError(f"There is no readable folder {title(folder)}.") from error
    found = [name for name in names if name.endswith(ENDING) and name != STATE_WEIGHTS]
    if len(found) > 1:
        raise CheckpointError(
            f"{title(folder)} holds several safetensors files and no {INDEX} that says which "
            "belong together."
        )
    if "adapter_config.json" in names or found == ["adapter_model.safetensors"]:
        raise CheckpointError(
            f"{title(folder)} holds an adapter, which is no model; merge it into its model first."
        )
    if found:
        return found[0]
    if any(name.endswith(PICKLED) for name in names):
        raise CheckpointError(
            f"{title(folder)} holds pickled weights, which can run code when they are opened; "
            f"save them as {WEIGHTS} instead."
        )
    if foreign := next((name for name in names if name.endswith(FOREIGN)), None):
        raise CheckpointError(
            f"{title(folder)} holds its weights as {shown(foreign)}, a format that is not read "
            f"here; save them as {WEIGHTS} instead."
        )
    raise CheckpointError(f"{title(folder)} has no {WEIGHTS}.")
