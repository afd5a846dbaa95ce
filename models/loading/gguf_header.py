"""The header of a GGUF file: its metadata and where each tensor lies, within bounds.

The file is not trusted: a count is compared with the bytes that are left before anything is
allocated for it, and every tensor must lie in the file and in no other. No number of a tensor is
read here. The `gguf` library's own reader is not used: it maps the file, and takes tensors
that lie over one another or beyond the end.
Source: the GGUF specification (ggml, docs/gguf.md), versions 2 and 3.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from models.file_text import visible
from models.loading.safe_files import (
    POINTER,
    CheckpointError,
    is_folder,
    quoted,
    regular_file,
    title,
)

GGUF = ".gguf"
MAGIC = b"GGUF"
VERSIONS = (2, 3)
LONGEST_GGUF_HEADER = 128 << 20
"""Bytes before the tensors: a vocabulary of a million tokens with its merges needs 40 MB."""
MOST_TENSORS, MOST_GGUF_VALUES, MOST_ITEMS = 10_000, 4_000, 1_000_000
"""Tensors, metadata values, and items of one list."""
MOST_GGUF_TEXTS = 2 * MOST_ITEMS
"""Texts in all lists together: a vocabulary and its merges."""
LONGEST_GGUF_NAME, LONGEST_GGUF_TEXT = 256, 8 << 20
MOST_ENTRIES = 10_000
"""Files of a folder that are searched."""
MOST_GGUF_AXES, LONGEST_AXIS = 4, 1 << 40
ALIGNMENT, LARGEST_ALIGNMENT = 32, 1 << 20
READ_AT_ONCE = 1 << 20
TEXT_TYPE, LIST_TYPE, FLAG_TYPE = 8, 9, 7
NUMBER_TYPES = dict(enumerate("BbHhIifB")) | {10: "Q", 11: "q", 12: "d"}
"""The types of the format by their number, as `struct` writes them."""
NUMBER_FORMATS = {kind: struct.Struct("<" + kind) for kind in NUMBER_TYPES.values()}


@dataclass(frozen=True)
class PackedList:
    """A list of the metadata as its bytes, which may be a vocabulary that nobody asks for."""

    kind: int
    count: int
    content: bytes

    def __repr__(self) -> str:
        return f"a list of {self.count:,}"

    def items(self) -> tuple[Any, ...]:
        """Its numbers, or its texts as bytes."""
        if self.kind != TEXT_TYPE:
            return struct.unpack(f"<{self.count}{NUMBER_TYPES[self.kind]}", self.content)
        texts, at, length_of = [], 0, NUMBER_FORMATS["Q"].unpack_from
        for _ in range(self.count):
            end = at + 8 + length_of(self.content, at)[0]
            texts.append(self.content[at + 8 : end])
            at = end
        return tuple(texts)


class GgufTensor(NamedTuple):
    """Where one tensor lies in the file. `shape` is torch's: the last axis lies together."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    bytes: int


@dataclass(frozen=True, eq=False)
class GgufHeader:
    """Metadata and tensors of one file, whose numbers are not read yet.

    `stamp` (file, time and size) tells whether the file changed since.
    """

    file: Path
    values: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]
    stamp: tuple[int, int, int]


def gguf_file(place: Path) -> Path | None:
    """The GGUF file that a path is, or that alone holds the weights of a folder; None if none.

    CheckpointError when a folder has several, of which none can be preferred.
    """
    if place.name.endswith(GGUF) and not is_folder(place):
        return place
    try:
        names = sorted(path.name for path in islice(place.iterdir(), MOST_ENTRIES))
    except (OSError, ValueError):  # none, or a name that no folder can have
        return None
    if any(name.endswith(".safetensors") for name in names):
        return None
    name = only_gguf(names, title(place))
    return None if name is None else place / name


def only_gguf(names: Sequence[str], folder: str) -> str | None:
    """The GGUF file among the names of a folder's files; None if there is none.

    `folder` is what a sentence calls it. CheckpointError when there are several.
    """
    files = [name for name in names if name.endswith(GGUF)]
    if len(files) > 1:
        raise CheckpointError(
            f"{folder} holds {len(files):,} GGUF files; open one of them, such as "
            f"{quoted(files[0])}."
        )
    return files[0] if files else None


def read_gguf_header(file: Path) -> GgufHeader:
    """The header of a GGUF file. CheckpointError says in one sentence why it is none.

    Time and memory grow with the header, which is at most LONGEST_GGUF_HEADER bytes: 50 ms for a
    vocabulary of 50,000 tokens with its merges. The last one is kept until its file changes.
    """
    path = regular_file(file.parent, file.name)
    try:
        status = path.stat()
        return _read(file, path, (status.st_ino, status.st_mtime_ns, status.st_size))
    except OSError as error:
        raise CheckpointError(
            f"{title(file.parent)} has no readable {quoted(file.name)}."
        ) from error


@lru_cache(maxsize=1)
def _read(file: Path, path: Path, stamp: tuple[int, int, int]) -> GgufHeader:
    with path.open("rb") as stream:
        return GgufHeader(file, *_Header(stream, stamp[-1], quoted(file.name)).read(), stamp)


class _Header:
    """Reads a file from its beginning, never further than it is long."""

    def __init__(self, stream: BinaryIO, size: int, what: str) -> None:
        self._stream, self._size, self._what = stream, size, what
        self._content, self._at, self._texts = bytearray(), 0, 0

    def read(self) -> tuple[dict[str, Any], dict[str, GgufTensor]]:
        self._check_start()
        n_tensors, n_values = self._number("Q"), self._number("Q")
        if n_tensors > MOST_TENSORS:
            raise self._fault(f"claims {n_tensors:,} tensors; at most {MOST_TENSORS:,} are read")
        if n_values > MOST_GGUF_VALUES:
            raise self._fault(f"claims {n_values:,} values; at most {MOST_GGUF_VALUES:,} are read")
        values: dict[str, Any] = {}
        for _ in range(n_values):
            name = self._name()
            if name in values:
                raise self._fault(f"gives {quoted(name)} twice")
            values[name] = self._value(name, self._number("I"))
        check_whole(values, self._fault)
        return values, self._place(values, [self._tensor() for _ in range(n_tensors)])

    def _check_start(self) -> None:
        start = self._take(min(24, self._size))
        if not start:
            raise self._fault("is empty; fetch it again")
        if start.startswith(POINTER):
            raise CheckpointError(
                f"{self._what} is a git-lfs pointer in place of the file; fetch the file with "
                "git lfs pull."
            )
        if start.lstrip()[:1] == b"<":
            raise self._fault("is a web page in place of the file; fetch it again")
        if start[:4] == MAGIC[::-1]:
            raise self._fault("is written in big-endian order, which is not read here")
        if start[:4] != MAGIC:
            raise self._fault("is not a GGUF file, since it does not begin with GGUF")
        if len(start) < 24:
            raise self._fault("is cut short")
        (version,) = struct.unpack_from("<I", start, 4)
        if not version & 0xFFFF and version:
            raise self._fault("is written in big-endian order, which is not read here")
        if version not in VERSIONS:
            raise self._fault(f"is of version {version:,}; versions 2 and 3 are read")
        self._at = 8

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._name()
        n_axes = self._number("I")
        if n_axes > MOST_GGUF_AXES:
            raise self._fault(
                f"gives {quoted(name)} {n_axes:,} axes; at most {MOST_GGUF_AXES} are read"
            )
        shape = struct.unpack(f"<{n_axes}Q", self._take(8 * n_axes))[::-1]
        if not all(0 < axis <= LONGEST_AXIS for axis in shape):
            raise self._fault(f"gives {quoted(name)} a shape that no weight has")
        kind, offset = self._number("I"), self._number("Q")
        return name, shape, kind, offset

    def _place(
        self, values: Mapping[str, Any], entries: list[tuple[str, tuple[int, ...], int, int]]
    ) -> dict[str, GgufTensor]:
        """Each tensor with its place, once it lies in the file and in no other."""
        alignment = values.get("general.alignment", ALIGNMENT)
        sound = type(alignment) is int and 0 < alignment <= LARGEST_ALIGNMENT
        if not sound or alignment & (alignment - 1):
            raise self._fault("has a general.alignment that is no power of two")
        first = -(-self._at // alignment) * alignment
        sizes = block_sizes()
        tensors: dict[str, GgufTensor] = {}
        for name, shape, kind, offset in entries:
            if name in tensors:
                raise self._fault(f"holds {quoted(name)} twice, so which one counts is not known")
            if kind not in sizes:
                raise self._fault(f"holds {quoted(name)} in type {kind:,}, which is not known")
            dtype, per_block, block_bytes = sizes[kind]
            row = shape[-1] if shape else 1
            if row % per_block:
                raise self._fault(
                    f"gives {quoted(name)} rows of {row:,} numbers, which {dtype} cannot hold"
                )
            length = prod(shape) // per_block * block_bytes
            if offset % alignment:
                raise self._fault(f"puts {quoted(name)} beside its alignment")
            if first + offset + length > self._size:
                raise self._fault(f"is cut short: it ends before {quoted(name)} does")
            tensors[name] = GgufTensor(dtype, shape, first + offset, length)
        last, end = "", 0
        for name, tensor in sorted(tensors.items(), key=lambda item: item[1].start):
            if tensor.start < end:
                raise self._fault(f"puts {quoted(name, 40)} over {quoted(last, 40)}")
            last, end = name, tensor.start + tensor.bytes
        return tensors

    def _value(self, name: str, kind: int) -> Any:
        if kind == LIST_TYPE:
            return self._list(name)
        if kind == TEXT_TYPE:
            return self._decode(name, self._take(self._length()))
        if kind not in NUMBER_TYPES:
            raise self._fault(f"gives {quoted(name)} a value of type {kind:,}, which is not known")
        value = self._number(NUMBER_TYPES[kind])
        if kind == FLAG_TYPE:
            return bool(value)
        return shortest(value) if NUMBER_TYPES[kind] == "f" else value

    def _list(self, name: str) -> PackedList:
        kind, count = self._number("I"), self._number("Q")
        if kind == LIST_TYPE:
            raise self._fault(f"gives {quoted(name)} a list of lists, which is not read here")
        if kind != TEXT_TYPE and kind not in NUMBER_TYPES:
            raise self._fault(f"gives {quoted(name)} a list of type {kind:,}, which is not known")
        item_bytes = 8 if kind == TEXT_TYPE else struct.calcsize("<" + NUMBER_TYPES[kind])
        if count > MOST_ITEMS:
            most = f"at most {MOST_ITEMS:,} are read"
            raise self._fault(f"claims {count:,} items of {quoted(name)}; {most}")
        start = self._at
        if kind == TEXT_TYPE:
            self._texts += count
            if self._texts > MOST_GGUF_TEXTS:
                raise self._fault(f"holds more texts than {MOST_GGUF_TEXTS:,} in its lists")
            for _ in range(count):
                self._pass(self._length())
        else:
            self._pass(count * item_bytes)
        return PackedList(kind, count, bytes(self._content[start : self._at]))

    def _length(self) -> int:
        length: int = self._number("Q")
        if length > LONGEST_GGUF_TEXT:
            raise self._fault(f"claims a text of {length:,} bytes, which it cannot hold")
        return length

    def _name(self) -> str:
        length = self._number("Q")
        if not 0 < length <= LONGEST_GGUF_NAME:
            raise self._fault(f"claims a name of {length:,} bytes, which none has")
        return self._decode("a name", self._take(length))

    def _decode(self, name: str, text: bytes) -> str:
        try:
            words = text.decode("utf-8")
        except UnicodeDecodeError:
            raise self._fault(f"holds {quoted(name)} that is not text") from None
        return words if name.startswith("tokenizer.") else visible(words)

    def _number(self, kind: str) -> Any:
        form = NUMBER_FORMATS[kind]
        self._pass(form.size)
        return form.unpack_from(self._content, self._at - form.size)[0]

    def _take(self, count: int) -> bytes:
        self._pass(count)
        return bytes(self._content[self._at - count : self._at])

    def _pass(self, count: int) -> None:
        """Go on by so many bytes; a fault where the file or the longest header ends before."""
        self._at += count
        if self._at > len(self._content):
            if self._at > self._size:
                raise self._fault("is cut short")
            if self._at > LONGEST_GGUF_HEADER:
                raise self._fault("has a header that is too long to be one")
            self._content += self._stream.read(max(self._at - len(self._content), READ_AT_ONCE))
            if self._at > len(self._content):
                raise self._fault("is cut short")

    def _fault(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self._what} {what}.")


def check_whole(values: Mapping[str, Any], fault: Callable[[str], CheckpointError]) -> None:
    """Refuses one of several files of a model, and a file without a model."""
    if values.get("split.count", 0) not in (0, 1):
        raise fault(
            "is one of several files of a model; join them with llama.cpp's gguf-split --merge"
        )
    kind = values.get("general.type", "model")
    if kind != "model":
        raise fault(f"holds no model but {quoted(kind)}")


def shortest(value: float) -> float:
    """The shortest decimal number that is this one in 32 bits: 1e-05, as its config had it."""
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        try:
            if struct.pack("<f", short) == struct.pack("<f", value):
                return short
        except OverflowError:
            continue
    return value


def block_sizes() -> dict[int, tuple[str, int, int]]:
    """Name, numbers and bytes of a block of every type that the format has, by its number."""
    from gguf.constants import GGML_QUANT_SIZES  # 0.1 s that only these files need

    return {int(kind): (kind.name, *sizes) for kind, sizes in GGML_QUANT_SIZES.items()}
