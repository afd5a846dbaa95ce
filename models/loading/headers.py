"""The header of a safetensors file, checked number by number before the library sees the file.

Where each tensor lies must follow from its type and shape, and all together must fill the
file without a gap. So a shape that is told here is true of the file.
"""

from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from models.loading.files import (
    POINTER,
    CheckpointError,
    parse_object,
    pointer_fault,
    regular_file,
    shown,
    title,
)

BITS = {
    "F4": 4,
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8"), 8),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}
"""What one number of each type takes."""
LONGEST_HEADER, MOST_TENSORS = 4 << 20, 10_000
"""Bytes of all headers of a folder and tensors: several times what any model needs."""
MOST_AXES, LONGEST_AXIS, MOST_NUMBERS = 8, 1 << 40, 1 << 48
"""More than any disk holds, and with room below 64 bits, in which others calculate."""
PICKLES = (b"PK\x03\x04", *(bytes((0x80, version)) for version in range(2, 6)))
"""How an archive of pickles or a single one starts."""


class Stored(NamedTuple):
    """What a header says of one tensor; `begin` and `end` count from the end of the header."""

    file: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def read_header(
    folder: Path, name: str, longest: int = LONGEST_HEADER
) -> tuple[dict[str, Stored], int]:
    """What the header of one file says of each tensor, and how many bytes it takes."""
    path = regular_file(folder, name)
    what = f"{shown(name)} in {title(folder)}"
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(64)
            length = int.from_bytes(start[:8], "little")
            if size < 8 or length > size - 8:
                raise CheckpointError(_no_header(folder, name, start))
            if length > longest:
                raise CheckpointError(f"The header of {what} is too long to be one.")
            header = _rest_of_header(file, length)
    except OSError as error:
        raise CheckpointError(f"{title(folder)} has no readable {shown(name)}.") from error
    try:
        text = header.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"The header of {what} is not text.") from error
    values = parse_object(text, f"The header of {what}")
    return check_header(values, size - 8 - length, name, what), length


def _rest_of_header(file: BinaryIO, length: int) -> bytes:
    file.seek(8)
    return file.read(length)


def _no_header(folder: Path, name: str, start: bytes) -> str:
    """What the file is instead, by how it starts. Read as a length, each of these is absurd."""
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


def check_header(values: dict[str, Any], size: int, file: str, what: str) -> dict[str, Stored]:
    """The tensors of a header over `size` bytes of numbers. CheckpointError when it lies."""
    notes = values.pop("__metadata__", {})
    if not isinstance(notes, dict) or not all(isinstance(note, str) for note in notes.values()):
        raise CheckpointError(f"The header of {what} has metadata that is no text.")
    if len(values) > MOST_TENSORS:
        raise CheckpointError(f"{what} holds more than {MOST_TENSORS:,} tensors.")
    tensors = {name: _stored(name, entry, file, what) for name, entry in values.items()}
    place = 0
    for name, stored in sorted(tensors.items(), key=lambda item: item[1][-2:]):
        if stored.begin != place:
            lies = "over another tensor" if stored.begin < place else "behind a gap"
            raise CheckpointError(f"{shown(name)} lies {lies} in {what}.")
        place = stored.end
    if place > size:
        raise CheckpointError(f"{what} is damaged or cut short.")
    if place < size:
        raise CheckpointError(f"{what} holds {size - place:,} bytes that belong to no tensor.")
    return tensors


def _stored(name: str, entry: object, file: str, what: str) -> Stored:
    """One entry of a header, if it is one."""
    if not _is_text(name) or not isinstance(entry, dict) or entry.keys() != KEYS:
        raise _invalid(name, what)
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not _are_counts(shape, MOST_AXES, LONGEST_AXIS) or not _are_counts(offsets, 2, 1 << 63):
        raise _invalid(name, what)
    if not isinstance(dtype, str) or len(offsets) != 2:
        raise _invalid(name, what)
    if dtype not in BITS:
        raise CheckpointError(f"{shown(name)} in {what} is of the unknown type {shown(dtype)}.")
    if prod(max(1, axis) for axis in shape) > MOST_NUMBERS:
        raise _invalid(name, what)  # with an axis of 0 none of them is there to be counted
    begin, end = offsets
    if prod(shape) * BITS[dtype] != 8 * (end - begin):
        raise CheckpointError(
            f"{shown(name)} has another length in {what} than its type and shape need."
        )
    return Stored(file, dtype, tuple(shape), begin, end)


KEYS = {"dtype", "shape", "data_offsets"}


def _invalid(name: str, what: str) -> CheckpointError:
    return CheckpointError(f"The header of {what} describes {shown(name)} in no valid way.")


def _is_text(name: str) -> bool:
    """Whether it can be written. JSON can spell half of a character."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _are_counts(values: object, most: int, largest: int) -> bool:
    """Whether it is a list of at most so many whole numbers from 0."""
    return (
        isinstance(values, list)
        and len(values) <= most
        and all(type(value) is int and 0 <= value <= largest for value in values)
    )
