"""Files that differ from a sound one in any way, drawn by Hypothesis."""

import copy
import json
import struct
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from tests.models.loading.hostile import UGLY, packed, unpacked

SIZES = (31, 32, 40, 62, 63, 64)
NUMBERS = st.sampled_from([0, 1, 2, 3, 255, *((1 << size) - 1 for size in SIZES), 1 << 20])
VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 7.5, 1e308, 1 << 31, 1 << 40, 1 << 63, 1 << 64, 10**90),
    *("", "7", "F16", UGLY, [], [[]], [0] * 3_000, [[[[]]]] * 40, {}, {"0": None}, {UGLY: [UGLY]}),
)
EDITS = st.sampled_from(["flip", "write", "number", "swap", "repeat", "remove", "cut"])


@st.composite
def changed_bytes(draw: st.DrawFn, sound: bytes, header: int) -> bytes:
    """The bytes after some edits of their first `header`, where a file says what it holds.

    A count, a length or a place is eight bytes, of which the last ones are zero.
    """
    raw = bytearray(sound)
    numbers = [at for at in range(header - 8) if not any(sound[at + 2 : at + 8])]
    fields = st.sampled_from(numbers or [0])
    places, lengths = st.integers(0, header), st.integers(1, 40)
    for _ in range(draw(st.integers(1, 3))):
        at, edit = draw(places), draw(EDITS)
        if edit == "flip":
            raw[at : at + 1] = bytes(byte ^ draw(st.integers(1, 255)) for byte in raw[at : at + 1])
        elif edit == "write":
            written = draw(st.binary(min_size=1, max_size=8))
            raw[at : at + len(written)] = written
        elif edit == "number":
            size, field = draw(st.sampled_from([4, 8])), draw(fields)
            raw[field : field + size] = draw(NUMBERS).to_bytes(8, "little")[:size]
        elif edit == "swap":
            one, other = draw(fields), draw(fields)
            raw[one : one + 8], raw[other : other + 8] = (
                raw[other : other + 8],
                raw[one : one + 8],
            )
        elif edit == "repeat":
            raw[at:at] = raw[at : at + draw(lengths)]
        elif edit == "remove":
            del raw[at : at + draw(lengths)]
        else:
            del raw[draw(st.integers(0, len(sound))) :]
    return bytes(raw)


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list and object inside with each of its places or keys."""
    for key, inner in [*(value.items() if isinstance(value, dict) else enumerate(value))]:
        yield value, key
        if isinstance(inner, dict | list):
            yield from places_in(inner)


@st.composite
def changed_json(draw: st.DrawFn, sound: Any) -> Any:
    """The object with some values replaced, exchanged, moved by one, taken out or added."""
    value = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, 3))):
        places = [*places_in(value)]
        if not places:
            break
        (inside, key), (other, other_key) = (draw(st.sampled_from(places)) for _ in range(2))
        edit = draw(st.sampled_from(["replace", "exchange", "move", "remove", "add"]))
        if edit == "replace":
            inside[key] = draw(st.sampled_from(VALUES))
        elif edit == "exchange":
            inside[key], other[other_key] = copy.deepcopy((other[other_key], inside[key]))
        elif edit == "move" and type(inside[key]) is int:
            inside[key] += draw(st.sampled_from([-1, 1]))
        elif edit == "remove":
            del inside[key]
        elif isinstance(inside, list):
            inside.insert(key, copy.deepcopy(other[other_key]))
        else:
            inside[draw(st.sampled_from(["__metadata__", "x", UGLY]))] = copy.deepcopy(inside[key])
    return value


def changed_file(name: str, sound: bytes) -> st.SearchStrategy[bytes]:
    """A file of this name: JSON, safetensors with a header of JSON, or GGUF, by its bytes too."""
    if name.endswith(".json"):
        other = changed_json(json.loads(sound)).map(lambda value: json.dumps(value).encode())
        return other | changed_bytes(sound, len(sound))
    if name.endswith(".gguf"):
        return changed_bytes(sound, sound.index(struct.pack("<f", 0.01) * 4))
    header, numbers = unpacked(sound)
    other = changed_json(header).map(lambda value: packed(json.dumps(value).encode(), numbers))
    return other | changed_bytes(sound, len(sound) - len(numbers) + 20)
