"""How numbers travel to the browser: 16-bit codes, split into bytes, deflated.

A message is one deflated block: the length of a JSON header, the header, then the
planes it names. An array of values is sent as codes of 16 bits,

    value = low + code / steps * (high - low)

* values in [0, 1] get 10,000 steps: a weight is right to half a ten-thousandth. A
  value above zero never becomes code 0, so that a small one is not taken for none.
* any other range gets 65,000 steps; one that has both signs is sent as [-m, m], so
  that zero is exactly zero.
* what is no number has a code of its own: `ABSENT`, `MINUS_INFINITY`, `INFINITY`.

All low bytes come first, then all high bytes: most high bytes are zero, and equal
bytes side by side deflate well. `shared.js` holds the reader.
"""

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.text.token_labels import Label, group_spans, specials, texts

UNIT_STEPS = 10_000
CODE_STEPS = 65_000
INFINITY = 65_533
MINUS_INFINITY = 65_534
ABSENT = 65_535
FEW_CELLS = 4_096
"""Cells: a picture of no more has its numbers in single precision too, 4 bytes each, so that what
is said of a cell is rounded once, like the same number in a sentence of the page."""
ZERO, CLIPPED_MEDIANS = 126, 6
"""Of small signed pictures: the code of zero, and where colours end, in medians of its numbers."""

Array = np.ndarray[Any, np.dtype[Any]]


def fields(record: object, names: str) -> dict[str, Any]:
    """Some fields of a record by their names, for a header."""
    return {name: getattr(record, name) for name in names.split()}


def finite(value: float | None) -> float | None:
    """The number; None where it is missing or not finite, which JSON has not."""
    return float(value) if value is not None and math.isfinite(value) else None


def largest_of(values: Tensor | Array) -> float:
    """The largest finite size; 0 where there is none."""
    array = as_array(values)
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def check_shape(values: Tensor, rows: Sequence[object], columns: Sequence[object]) -> None:
    """ValueError where there is not a label for each row and column."""
    if tuple(values.shape[-2:]) != (len(rows), len(columns)):
        raise ValueError(
            f"values have the shape {tuple(values.shape)}, but there are {len(rows)} rows "
            f"and {len(columns)} columns"
        )


def labelled(rows: Sequence[Label], columns: Sequence[Label]) -> dict[str, Any]:
    """What a header says of the tokens at two sides: labels, which are special, and groups."""
    return {
        "rows": texts(rows),
        "columns": texts(columns),
        "muted": [specials(rows), specials(columns)],
        "groups": [group_spans(rows), group_spans(columns)],
    }


def as_array(values: Tensor | Array) -> Array:
    """The values as numpy floats, wherever they live."""
    if isinstance(values, Tensor):
        return values.detach().to("cpu", torch.float64).numpy()
    return np.asarray(values, dtype=np.float64)


def encode(values: Tensor | Array) -> tuple[Array, dict[str, Any]]:
    """Values as 16-bit codes, and what the codes mean; the range is chosen from what is there."""
    array = as_array(values)
    finite = np.isfinite(array)
    numbers = array[finite]
    least, most = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)

    if least >= 0 and most <= 1 + 1e-6:
        low, high, steps = 0.0, 1.0, UNIT_STEPS
    elif least < 0 < most:
        largest = max(-least, most)
        low, high, steps = -largest, largest, CODE_STEPS
    else:
        low, high, steps = min(least, 0.0), max(most, 0.0), CODE_STEPS

    filled = np.where(finite, array, 0.0)
    codes = np.rint((filled - low) * (steps / (high - low)))
    codes = np.asarray(np.clip(codes, 0, steps).astype("<u2"))
    if steps == UNIT_STEPS:
        codes[(codes == 0) & (filled > 0)] = 1
    codes[np.isposinf(array)] = INFINITY
    codes[np.isneginf(array)] = MINUS_INFINITY
    codes[np.isnan(array)] = ABSENT
    return codes, {"shape": list(codes.shape), "low": low, "high": high, "steps": steps}


def encode_picture(values: Tensor | Array) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What the codes of a picture mean, and its planes: where it is small, exact numbers too."""
    codes, header = encode(values)
    planes = {"values": plane(codes)}
    if codes.size <= FEW_CELLS:
        planes["exact"] = singles(as_array(values))
    return header, planes


def decode(codes: Array, header: Mapping[str, Any]) -> Array:
    """What a reader makes of the codes (the browser's arithmetic, for the tests)."""
    low, high, steps = header["low"], header["high"], header["steps"]
    values = low + codes.astype(np.float64) / steps * (high - low)
    values[codes == INFINITY] = np.inf
    values[codes == MINUS_INFINITY] = -np.inf
    values[codes == ABSENT] = np.nan
    return values


def plane(codes: Array) -> bytes:
    """All low bytes, then all high bytes."""
    halves: Array = np.ascontiguousarray(codes, dtype="<u2").reshape(-1).view(np.uint8)
    return halves.reshape(-1, 2).T.tobytes()


def every_head(weights: Tensor, allowed: Tensor) -> dict[str, bytes]:
    """Planes from which the browser makes those of one head's matrix (`headPlanes` in grid).

    Weights (layers, heads, q, k) within [0, 1], as a matrix of this size has them: in single
    precision where they are few, else their codes; and the mask of each layer.
    """
    array = as_array(weights)
    is_few = array[0, 0].size <= FEW_CELLS
    heads = {"singles": singles(array)} if is_few else {"codes": plane(encode(array)[0])}
    return {**heads, "allowed": b"".join(map(bits, allowed))}


def singles(array: Array) -> bytes:
    return np.ascontiguousarray(array, dtype="<f4").tobytes()


def shades(cells: Tensor) -> tuple[list[float | None], dict[str, bytes]]:
    """Small pictures (n, q, k) as a byte a cell, each scaled to its own largest, and these largest.

    A weight above zero is never drawn as zero. A cell that is NaN is in the plane `unknown`; the
    largest of a picture with no number at all is None.
    """
    is_known = ~cells.isnan()
    filled = cells.where(is_known, 0)
    size = len(filled), 1, 1
    top = filled.amax((1, 2), keepdim=True) if filled.numel() else filled.new_zeros(size)
    scaled = filled / top.where(top > 0, 1)
    codes = torch.where(scaled > 0, (scaled * 255).round().clamp(1, 255), 0).to(torch.uint8)
    tops = [
        round(float(value), 4) if numbers or not cells[0].numel() else None
        for value, numbers in zip(top.flatten(), is_known.flatten(1).any(1), strict=True)
    ]
    planes = {"cells": codes.cpu().numpy().tobytes()}
    return tops, planes if is_known.all() else {**planes, "unknown": bits(~is_known)}


def signed_shades(cells: Tensor) -> tuple[list[list[float | None]], bytes]:
    """Small pictures (n, r, c) of numbers of either sign as a byte a cell, code 126 for zero.

    Each goes from -end, code 0, to end, code 252. The end is the largest absolute value, or
    `CLIPPED_MEDIANS` times the median of those that are not zero where that is less: one
    outlier would leave the rest of a picture without colour, and is drawn as the end. By
    picture: the end and the largest, both None where no number is finite. Codes 253 to 255 are
    infinity, -infinity and NaN.
    """
    array = as_array(cells).reshape(len(cells), -1)
    finite = np.isfinite(array)
    sizes = np.abs(array, where=finite, out=np.zeros_like(array))
    ends: list[list[float | None]] = []
    for row, is_finite in zip(sizes, finite, strict=True):
        some = row[row > 0]
        largest = float(some.max()) if some.size else 0.0
        end = min(largest, CLIPPED_MEDIANS * float(np.median(some))) if some.size else 0.0
        ends.append([end, largest] if is_finite.any() else [None, None])
    scale = np.array([[end or 1.0] for end, _ in ends])
    filled = np.where(finite, array, 0.0)
    codes = np.rint(np.clip(filled / scale, -1, 1) * ZERO) + ZERO
    codes[(codes == ZERO) & (filled > 0)] = ZERO + 1
    codes[(codes == ZERO) & (filled < 0)] = ZERO - 1
    for code, special in ((253, np.isposinf), (254, np.isneginf), (255, np.isnan)):
        codes[special(array)] = code
    return ends, codes.astype(np.uint8).tobytes()


def bits(flags: Tensor | Array) -> bytes:
    """Eight flags to a byte, the first in the highest bit."""
    array = flags.detach().to("cpu").numpy() if isinstance(flags, Tensor) else np.asarray(flags)
    return np.packbits(array.astype(bool).reshape(-1)).tobytes()


def pack(header: Mapping[str, Any], planes: Mapping[str, bytes] | None = None) -> bytes:
    """One message: the header, with the length of every plane, and the planes."""
    planes = planes or {}
    sizes = {name: len(data) for name, data in planes.items()}
    head = json.dumps({**header, "planes": sizes}, separators=(",", ":"), allow_nan=False).encode()
    body = b"".join((len(head).to_bytes(4, "little"), head, *planes.values()))
    return zlib.compress(body, 6)


def unpack(message: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    body = zlib.decompress(message)
    at = 4 + int.from_bytes(body[:4], "little")
    header: dict[str, Any] = json.loads(body[4:at])
    planes = {}
    for name, size in header.pop("planes").items():
        planes[name] = body[at : at + size]
        at += size
    return header, planes


def codes_of(data: bytes, shape: list[int]) -> Array:
    """The codes of a plane, put together again."""
    halves = np.frombuffer(data, dtype=np.uint8).reshape(2, -1).astype(np.uint16)
    return (halves[0] | halves[1] << 8).reshape(shape)
