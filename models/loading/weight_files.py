"""The tensors of a folder, in one safetensors file or in many, as far as they can be trusted.

Names, types, shapes and places come from the headers: the tensors must fill the file without
a gap. Pickled weights are refused, since opening them can run code.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from math import prod
from operator import mul
from pathlib import Path
from typing import NamedTuple

from models.loading.gguf_header import gguf_file, only_gguf, read_gguf_header
from models.loading.gguf_weights import gguf_weights
from models.loading.safe_files import (
    ADAPTER_CONFIG,
    CONFIG,
    INDEX,
    POINTER,
    CheckpointError,
    is_folder,
    is_there,
    parse_object,
    pointer_fault,
    quoted,
    read_json,
    regular_file,
    title,
)
from models.loading.stored_weights import Stamp, StoredTensor, Weights, stamp_of

WEIGHTS, STATE_WEIGHTS, ENDING = "model.safetensors", "state.safetensors", ".safetensors"
BITS = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    **dict.fromkeys(("BOOL", "I8", "U8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8),
    **dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
}
"""Bits of one number, by the types of the format."""
LONGEST_HEADER, MOST_TENSORS = 4 << 20, 10_000
"""Bytes of all headers of a folder, and tensors: several times what any model needs."""
MOST_WRITTEN_AXES, LARGEST_OFFSET = 64, 1 << 64
"""Axes that a header may list, and the bound of their sizes and products."""
MOST_AXES, LONGEST_AXIS = 8, 1 << 40
"""More than any model has, and few enough for torch to represent."""
MOST_SHARDS = 1_000
MOST_ENTRIES = 10_000
"""Files of a folder that are listed where none has the expected name."""
WRAPPERS = ("_orig_mod.", "module.", "base_model.model.")
Shapes = Mapping[str, tuple[int, ...]]
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
PICKLES = (b"PK\x03\x04", *(bytes((0x80, version)) for version in range(2, 6)))
"""How an archive of pickles or a single one starts."""
FOREIGN = (".h5", ".msgpack", ".onnx", ".ggml", ".npz", ".tflite")


class FileHeader(NamedTuple):
    """The tensors of one file by name, the length of its header, and its stamp."""

    tensors: dict[str, StoredTensor]
    length: int
    stamp: Stamp

    @property
    def bytes(self) -> int:
        """Bytes of the tensors."""
        return self.stamp[-1] - self.length


def open_weights(folder: str | Path) -> Weights:
    """The weights of a folder or GGUF file, known by their headers alone.

    A wrapper that begins every name is left out of the names.
    """
    weights = _open_as_named(model_folder(Path(folder)))
    tensors, wrapper = weights.tensors, ""
    while start := next((w for w in WRAPPERS if all(n.startswith(w) for n in tensors)), ""):
        if not tensors:
            break
        tensors = {name.removeprefix(start): stored for name, stored in tensors.items()}
        wrapper += start
    return replace(weights, tensors=tensors, wrapper=wrapper)


def _open_as_named(folder: Path) -> Weights:
    if (file := gguf_file(folder)) is not None:
        return gguf_weights(read_gguf_header(file))
    if is_there(folder, WEIGHTS):
        return open_file(folder, WEIGHTS)
    if is_there(folder, INDEX):
        return _open_shards(folder)
    return open_file(folder, _only_file(folder))


def open_file(folder: Path, name: str) -> Weights:
    """The weights in one safetensors file."""
    header = read_header(folder, name)
    return Weights(folder, dict(sorted(header.tensors.items())), header.bytes, {name: header.stamp})


NOTES = "__metadata__"
"""A header's entry of texts that describe no tensor."""


def read_header(folder: Path, name: str, longest: int = LONGEST_HEADER) -> FileHeader:
    """The header of one file. CheckpointError where it cannot be true."""
    path = regular_file(folder, name)
    what = f"{quoted(name)} in {title(folder)}"
    try:
        with path.open("rb") as file:
            stamp = stamp_of(os.fstat(file.fileno()))
            start = file.read(64)
            size = stamp[-1]
            length = 8 + int.from_bytes(start[:8], "little")
            if length > size:
                raise CheckpointError(_no_header(folder, name, start))
            if length > longest:
                raise CheckpointError(f"The header of {what} is too long to be one.")
            file.seek(8)
            content = file.read(length - 8)
    except OSError as error:
        raise CheckpointError(f"{title(folder)} has no readable {quoted(name)}.") from error
    tensors, end = _parse_header(content, name, length, what)
    if end != size:
        raise CheckpointError(f"{what} is damaged or cut short.")
    for tensor, stored in tensors.items():
        if len(stored.shape) > MOST_AXES or max(stored.shape, default=0) > LONGEST_AXIS:
            raise CheckpointError(f"{quoted(tensor)} in {what} has a shape that no weight has.")
    return FileHeader(tensors, length, stamp)


def _parse_header(
    content: bytes, name: str, start: int, what: str
) -> tuple[dict[str, StoredTensor], int]:
    """The tensors in a header, the first of which begins at `start`, and where the last one ends.

    CheckpointError unless they follow each other without a gap.
    """
    damaged = f"{what} is damaged or cut short."
    try:
        entries = parse_object(content.decode("utf-8"), what, exact=True)
    except (CheckpointError, UnicodeError) as error:
        raise CheckpointError(damaged) from error
    notes = entries.pop(NOTES, {})
    are_sound = isinstance(notes, dict) and all(isinstance(note, str) for note in notes.values())
    if not content.startswith(b"{") or not are_sound or not all(map(_is_entry, entries.values())):
        raise CheckpointError(damaged)
    if len(entries) > MOST_TENSORS:
        raise CheckpointError(f"{what} holds more than {MOST_TENSORS:,} tensors.")
    tensors, end = dict[str, StoredTensor](), 0
    for tensor, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape, (begins, ends) = (entry[key] for key in ("dtype", "shape", "data_offsets"))
        if begins != end or 8 * (ends - begins) != BITS[dtype] * prod(shape):
            raise CheckpointError(damaged)
        tensors[tensor] = StoredTensor(name, dtype, tuple(shape), start + begins)
        end = ends
    return tensors, start + end


def _is_entry(entry: object) -> bool:
    """Whether it describes a tensor as the format asks for."""
    if not isinstance(entry, dict):
        return False
    dtype, shape, offsets = map(entry.get, ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in BITS:
        return False
    if not isinstance(offsets, list) or len(offsets) != 2 or not isinstance(shape, list):
        return False
    if not all(type(size) is int and 0 <= size < LARGEST_OFFSET for size in (*shape, *offsets)):
        return False
    return len(shape) <= MOST_WRITTEN_AXES and all(
        size < LARGEST_OFFSET for size in accumulate(shape, mul)
    )


def _no_header(folder: Path, name: str, start: bytes) -> str:
    """What the file is instead, by its first bytes. Read as a length, each of these is absurd."""
    what = f"{quoted(name)} in {title(folder)}"
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
    """The weights in all files of the index, which must list each tensor once, and truly."""
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
            f"first {quoted(missing[0])}."
        )
    tensors: dict[str, StoredTensor] = {}
    left, total = LONGEST_HEADER, 0
    stamps: dict[str, Stamp] = {}
    for file in files:
        header = read_header(folder, file, left)
        left -= header.length
        total += header.bytes
        stamps[file] = header.stamp
        if twice := next((name for name in header.tensors if name in tensors), None):
            raise CheckpointError(
                f"{quoted(twice)} is in {quoted(file, 40)} and in "
                f"{quoted(tensors[twice].file, 40)} of {title(folder)}, "
                "so which one counts is not known."
            )
        tensors |= header.tensors
        if len(tensors) > MOST_TENSORS:
            raise CheckpointError(f"{title(folder)} holds more than {MOST_TENSORS:,} tensors.")
    for name, file in listed.items():
        if name not in tensors or tensors[name].file != file:
            raise CheckpointError(
                f"{quoted(file)} in {title(folder)} lacks {quoted(name)}, "
                "which the index puts there."
            )
    return Weights(folder, dict(sorted(tensors.items())), total, stamps)


def _check_shard_name(folder: Path, name: str) -> None:
    if not name or len(name) > 255 or not name.isprintable():
        raise CheckpointError(f"{INDEX} in {title(folder)} names a file by no file name.")
    if "/" in name or "\\" in name or name in (".", ".."):
        raise CheckpointError(f"{INDEX} in {title(folder)} names a file outside the folder.")
    if not name.endswith(ENDING):
        raise CheckpointError(
            f"{INDEX} in {title(folder)} names {quoted(name)}, which is no safetensors file."
        )


ADAPTER_WEIGHTS, PEFT_PREFIX = "adapter_model.safetensors", "base_model.model."


def _only_file(folder: Path) -> str:
    try:
        names = sorted(path.name for path in islice(folder.iterdir(), MOST_ENTRIES))
    except OSError as error:
        raise CheckpointError(f"There is no readable folder {title(folder)}.") from error
    return only_file(names, title(folder))


def model_folder(folder: Path) -> Path:
    """The folder itself, or of an adapter alone the one on this machine that it names.

    It may name the model's folder, or by its ID a folder beside its own. In the hub's cache no
    path is followed, since a stranger wrote it; an upload is never an adapter alone. A model that
    has an adapter of its own is not followed either.
    """
    is_alone = is_there(folder, ADAPTER_CONFIG) and not is_there(folder, CONFIG)
    if not is_alone or folder.absolute().parent.name == "snapshots":
        return folder
    named = adapter_base(folder)
    if not named:
        return folder
    named_here = Path(named)
    is_id = not named_here.is_absolute() and named_here.name not in ("", "..")
    beside = [folder.absolute().parent / named_here.name] if is_id else []
    for base in (named_here, *beside):
        if is_folder(base) and is_there(base, CONFIG) and not is_there(base, ADAPTER_CONFIG):
            return base
    return folder


def adapter_base(folder: Path) -> str | None:
    """What the adapter in a folder calls its model; None where there is no adapter."""
    if not is_there(folder, ADAPTER_CONFIG):
        return None
    named = read_json(folder, ADAPTER_CONFIG).get("base_model_name_or_path")
    return named if isinstance(named, str) else ""


def base_title(named: str) -> str:
    """What a sentence calls the model of an adapter: its ID, or the last part of its path."""
    path = Path(named)
    return quoted(f"…/{path.name}" if path.is_absolute() else named)


def adapter_fault(folder: str, base: str | None = None, has_gguf: bool = False) -> str:
    """Why an adapter cannot be opened without the files of its model, which it calls `base`."""
    if has_gguf:
        return (
            f"{folder} holds a LoRA adapter beside a GGUF file, which has other names for its "
            "weights; put the adapter beside safetensors files."
        )
    named = f", {base_title(base)}," if base else ""
    return (
        f"{folder} is a LoRA adapter without its model: the model that it belongs to{named} is "
        "not here. Put the files of both into one folder."
    )


def check_adapter(names: Collection[str], folder: str) -> None:
    """CheckpointError where one of the two files of an adapter is not among the names."""
    if ADAPTER_CONFIG in names and ADAPTER_WEIGHTS not in names:
        why = "is pickled, which can run code" if "adapter_model.bin" in names else "is missing"
        raise CheckpointError(
            f"{folder} has an {ADAPTER_CONFIG}, but its adapter {why}; save it as "
            f"{ADAPTER_WEIGHTS}."
        )
    if ADAPTER_WEIGHTS in names and ADAPTER_CONFIG not in names:
        raise CheckpointError(f"{folder} has {ADAPTER_WEIGHTS} without its {ADAPTER_CONFIG}.")


def only_file(names: Sequence[str], folder: str) -> str:
    """The one safetensors or GGUF file of any name, or the reason why nothing can be read.

    `names` are those of the folder's files, and `folder` is what a sentence calls it.
    """
    others = (STATE_WEIGHTS, ADAPTER_WEIGHTS)
    files = [name for name in names if name.endswith(ENDING) and name not in others]
    if len(files) > 1:
        raise CheckpointError(
            f"{folder} holds several safetensors files and no {INDEX} that says which "
            "belong together."
        )
    if files:
        return files[0]
    file = only_gguf(names, folder)
    if ADAPTER_CONFIG in names or ADAPTER_WEIGHTS in names:
        raise CheckpointError(adapter_fault(folder, has_gguf=file is not None))
    if file is not None:
        return file
    if any(name.endswith(PICKLED) for name in names):
        raise CheckpointError(
            f"{folder} holds pickled weights, which can run code when they are opened; "
            f"save them as {WEIGHTS} instead."
        )
    if foreign := next((name for name in names if name.endswith(FOREIGN)), None):
        raise CheckpointError(
            f"{folder} holds its weights as {quoted(foreign)}, a format that is not read "
            f"here; save them as {WEIGHTS} instead."
        )
    raise CheckpointError(f"{folder} has no {WEIGHTS}.")
