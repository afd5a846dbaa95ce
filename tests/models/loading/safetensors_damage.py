"""Weight files whose header lies, or whose tensors are not those of the config."""

import json
import math
from pathlib import Path
from typing import Any

import torch

from models.loading.safe_files import shown
from tests.models.loading.hostile import (
    UGLY,
    WEIGHTS,
    Cases,
    Damage,
    Header,
    all_of,
    as_type,
    config,
    data,
    entry,
    lying,
    raw_header,
    tensors,
    truncated,
    with_number,
    with_tensor,
)

WTE, NORM, BIAS = "transformer.wte.weight", "transformer.ln_f.weight", "transformer.ln_f.bias"
CUT, MIB = "is damaged or cut short.", 1 << 20


def one(**changes: Any) -> str:
    """A header of one tensor of no numbers."""
    return json.dumps({"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} | changes})


def many(tensors: int) -> str:
    return json.dumps({f"{i}": json.loads(one())["a"] for i in range(tensors)})


def swap(header: Header) -> None:
    """Two tensors of unlike length in each other's place."""
    offsets = "data_offsets"
    header[WTE][offsets], header[NORM][offsets] = header[NORM][offsets], header[WTE][offsets]


def lay_over(header: Header) -> None:
    """Two tensors of like length in one place."""
    header[NORM]["data_offsets"] = header[BIAS]["data_offsets"]


def shift(by: int, *names: str) -> Damage:
    """Some tensors, or all of them, said to lie elsewhere."""

    def change(header: Header) -> None:
        for name in names or header:
            header[name]["data_offsets"] = [place + by for place in header[name]["data_offsets"]]

    return lying(change)


NOTES: list[Any] = [{"a": 1}, ["a"], {"a": {}}]
HEADERS: Cases = {
    "of 2^63 bytes": (raw_header("{}", 1 << 63), CUT),
    "of 2^64 - 1 bytes": (raw_header("{}", (1 << 64) - 1), CUT),
    "longer than the file": (raw_header("{}", 3), CUT),
    "shorter than it is": (raw_header("{}", 1), CUT),
    "seven bytes in all": (data(WEIGHTS, b"\2\0\0\0\0\0\0"), CUT),
    "too long": (raw_header(one() + " " * 5 * MIB), "is too long to be one"),
    "190,000 lists": (raw_header('{"a":[' + "[]," * 190_000 + "1]}"), CUT),
    "190,000 objects": (raw_header('{"a":[' + '{"b":1},' * 190_000 + "1]}"), CUT),
    "190,000 names": (
        raw_header("{" + ",".join(f'"{i}":1' for i in range(190_000)) + "}"),
        CUT,
    ),
    "one name of 4 MB": (raw_header('{"' + "é" * 2_000_000 + '":1}'), CUT),
    "one emoji in 4 MB": (raw_header('{"🙂' + "a" * 4_000_000 + '":1}'), CUT),
    "of no tensor": (raw_header("{}"), "there are only 0 tensors."),
    **{
        f"metadata {notes}": (raw_header(json.dumps({"__metadata__": notes})), CUT)
        for notes in NOTES
    },
    "10,000 tensors": (raw_header(many(10_000)), "which its config asks for."),
    "10,001 tensors": (raw_header(many(10_001)), "holds more than 10,000 tensors."),
    "39,000 tensors": (raw_header(many(39_000)), "holds more than 10,000 tensors."),
    "a name that is ugly": (raw_header(json.dumps({UGLY: 1})), CUT),
    "half a character": (raw_header(one().replace('"a"', '"\\udc00"')), CUT),
}
HEADERS |= {
    f"an entry {entry}": (raw_header(f'{{"a": {entry}}}'), CUT)
    for entry in ("1", "null", '["F32", [0]]', '{"shape": [0], "data_offsets": [0, 0]}')
}
WRONG_FIELDS: list[tuple[str, str, list[Any]]] = [
    ("stride", "there are only 1 tensors", [[1]]),
    ("shape", "has a shape that no weight has", [[0, 1 << 41], [0, 1 << 63], [0] * 9]),
    ("dtype", CUT, [32, ["F32"], "F31", UGLY]),
    ("shape", CUT, [0, ["0"], [0.0], [True], [-1, 0], [-1, -3], [1 << 32, 1 << 32, 4]]),
    ("shape", CUT, [[1 << 62, 4], [1 << 40, 1 << 40, 0], [10**90], [1] * 1000]),
    ("data_offsets", CUT, [[], [0, 0, 0], {"0": 0, "1": 0}, [-4, -4], [0, 1 << 64]]),
    ("data_offsets", CUT, [[4, 0], [1 << 62, 1 << 62]]),
]
HEADERS |= {
    f"{field} {shown(wrong)}": (raw_header(one(**{field: wrong})), words)
    for field, words, all_wrong in WRONG_FIELDS
    for wrong in all_wrong
}
HEADERS |= {
    "behind the end": (raw_header(one(shape=[1], data_offsets=[0, 4])), CUT),
    "too long for its shape": (entry(WTE, shape=[12, 12]), CUT),
    "too short for its type": (entry(WTE, dtype="F64"), CUT),
    "half a byte long": (raw_header(one(dtype="F4", shape=[1])), CUT),
    "over another": (lying(lay_over), CUT),
    "in another's place": (lying(swap), CUT),
    "one byte early": (shift(-1, NORM), CUT),
    "one byte late": (shift(1, NORM), CUT),
    "all one byte late": (shift(1), CUT),
    "before bytes of nobody": (lying(lambda header: None, b"1234"), CUT),
    "behind a gap": (lying(lambda header: header.pop(NORM)), CUT),
}


def packed_small(folder: Path) -> None:
    """Every tensor as bytes, as quantizers store them."""
    tensors(lambda values: values.update({n: v.to(torch.int8) for n, v in values.items()}))(folder)


ATTENTION = "transformer.h.0.attn.c_attn.weight"
TENSORS: Cases = {
    "half of them cut off": (truncated(lambda size: size // 2), CUT),
    "a byte cut off": (truncated(lambda size: size - 1), CUT),
    "all cut off behind the header": (truncated(lambda size: size - 6000), CUT),
    "one missing": (tensors(lambda values: values.pop(WTE)), "lacks wte.weight, which"),
    "one by another name": (tensors(lambda v: v.update({UGLY[:7]: v.pop(NORM)})), "lacks ln_f"),
    **{
        f"{name} {shape}": (with_tensor(name, torch.zeros(shape)), f"has the shape {shape}")
        for name, shape in [
            *((WTE, (12, 13)), (WTE, (156,)), (NORM, ()), (NORM, (12, 1, 1, 1)), (NORM, (0,))),
            *((ATTENTION, (36,)), (ATTENTION, (12, 35))),
        ]
    },
    **{
        f"numbers of {dtype}": (as_type(name, dtype), words)
        for name, dtype, words in [
            (WTE, torch.int8, "is quantized (I8), which is not read here"),
            (WTE, torch.uint8, "is quantized (U8), which is not read here"),
            (WTE, torch.float8_e4m3fn, "is quantized (F8_E4M3)"),
            (WTE, torch.float8_e5m2, "is quantized (F8_E5M2)"),
            (NORM, torch.int64, "is of type I64, which no weight has"),
            (NORM, torch.bool, "is of type BOOL, which no weight has"),
            (NORM, torch.complex64, "is of type C64, which no weight has"),
        ]
    },
    "all bytes": (packed_small, "is quantized (I8), which is not read here"),
    "bytes of a quantizer": (
        all_of(packed_small, config(quantization_config={"quant_method": "bitsandbytes"})),
        "quantization_config",
    ),
    "NaN": (with_number(WTE, math.nan), "wte.weight in one holds NaN"),
    "infinity": (with_number(NORM, math.inf), "ln_f.weight in one holds NaN, infinite"),
    "less than all": (with_number(NORM, -math.inf), "ln_f.weight in one holds NaN, infinite"),
    "half NaN": (with_number(WTE, math.nan, torch.float16), "holds NaN"),
    "brain NaN": (with_number(WTE, math.nan, torch.bfloat16), "holds NaN"),
    "double NaN": (with_number(WTE, math.nan, torch.float64), "holds NaN"),
    "what 32 bits cannot hold": (with_number(WTE, 1e300, torch.float64), "or too large numbers"),
    "nothing but NaN": (
        tensors(lambda values: [each.fill_(math.nan) for each in values.values()]),
        "holds NaN",
    ),
    "a layer too few": (
        tensors(lambda v: [v.pop(name) for name in list(v) if ".h.1." in name]),
        "which its config asks for",
    ),
    "as many as 200 layers need": (
        all_of(config(n_layer=200), raw_header(many(10_000))),
        "which its config asks for",
    ),
}
