"""Files that differ from a sound one in any way, drawn by Hypothesis."""

import copy
import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.models.loading import gguf_damage
from tests.models.loading.hostile import UGLY, packed, unpacked

SIZES = (31, 32, 40, 62, 63, 64)
NUMBERS = st.sampled_from([0, 1, 2, 3, 255, *((1 << size) - 1 for size in SIZES), 1 << 20])
VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 7.5, 1e308, 1 << 31, 1 << 40, 1 << 63, 1 << 64, 10**90),
    *("", "7", "F16", "../config.json", "/etc/passwd", "..", UGLY),
    *([], [[]], [0] * 3_000, [[[[]]]] * 40, {}, {"0": None}, {UGLY: [UGLY]}),
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
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
            raw[one : one + 8], raw[other : other + 8] = raw[other:][:8], raw[one:][:8]
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


NUMBER_KINDS = {kind: struct.calcsize(form) for kind, form in gguf_damage.FORMS.items()}
ITEMS = st.lists(st.binary(max_size=9), max_size=14)
VALUES_OF_GGUF = st.one_of(
    *(
        st.tuples(st.just(kind), st.binary(min_size=size, max_size=size))
        for kind, size in NUMBER_KINDS.items()
    ),
    st.sampled_from(["", "bert", "falcon", "gpt2", UGLY, "x" * 9_000]).map(gguf_damage.word),
    ITEMS.map(lambda texts: gguf_damage.words(*texts)),
    ITEMS.map(lambda texts: (gguf_damage.LIST, gguf_damage.listed(gguf_damage.I32, [len(texts)]))),
    st.tuples(st.integers(0, 99), st.binary(max_size=20)),
)
"""Of every type; the last ones lie about what follows."""


@st.composite
def changed_draft(draw: st.DrawFn) -> gguf_damage.Draft:
    """A GGUF file of which some values and tensors are others, or which claims other counts."""
    draft = gguf_damage.good()
    for _ in range(draw(st.integers(1, 3))):
        edit = draw(st.sampled_from(["value", "value", "tensor", "tensor", "claim"]))
        if edit == "value":
            name = draw(st.sampled_from([*draft.values, "x", "llama.rope.freq_base"]))
            draft = draft.with_values({name: draw(st.none() | VALUES_OF_GGUF)})
        elif edit == "tensor":
            name, old = draw(st.sampled_from([*draft.tensors.items()]))
            content = draw(st.sampled_from([old.bytes(), b"", bytes(64), b"\xff" * 4 * 32]))
            axes = st.lists(st.sampled_from([*old.axes, 1, 32, 33]) | NUMBERS, max_size=5)
            other = gguf_damage.Tensor(
                draw(st.just(old.axes) | axes.map(tuple)),
                draw(st.just(old.kind) | st.integers(0, 40)),
                draw(st.none() | st.sampled_from([4, 32, 64]) | NUMBERS),
                content,
            )
            draft = draft.with_tensors({name: draw(st.sampled_from([other, other, None]))})
        else:
            claims: list[dict[str, Any]] = [
                {"n_tensors": draw(NUMBERS)},
                {"n_values": draw(NUMBERS)},
                {"more_tensors": [("output_norm.weight", gguf_damage.Tensor((32,)))]},
                {"version": draw(st.binary(min_size=4, max_size=4))},
            ]
            draft = replace(draft, **draw(st.sampled_from(claims)))
    return draft


def changed_file(name: str, sound: bytes) -> st.SearchStrategy[bytes]:
    """A file of this name: JSON, safetensors with a header of JSON, or GGUF, by its bytes too."""
    if name.endswith(".json"):
        other = changed_json(json.loads(sound)).map(lambda value: json.dumps(value).encode())
        return other | changed_bytes(sound, len(sound))
    if name.endswith(".gguf"):
        by_fields = changed_draft().map(gguf_damage.Draft.written)
        return by_fields | changed_bytes(sound, sound.index(struct.pack("<f", 0.01) * 4))
    header, numbers = unpacked(sound)
    other = changed_json(header).map(lambda value: packed(json.dumps(value).encode(), numbers))
    return other | changed_bytes(sound, len(sound) - len(numbers) + 20)
