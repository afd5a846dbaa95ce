"""Hostile safetensors do no more than print their sentence: headers that lie, odd numbers."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from models import load_checkpoint
from models.weights import open_weights
from tests.models.hostile import (
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
    packed,
    raw_header,
    renamed,
    tensors,
    truncated,
    unpacked,
    with_number,
    with_tensor,
)
from tests.models.opening import Opener, all_refused, refused

WTE, NORM, BIAS = "transformer.wte.weight", "transformer.ln_f.weight", "transformer.ln_f.bias"
VALID = "in no valid way"
CUT = "is damaged or cut short."
MIB = 1 << 20


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


def shift(by: int) -> Damage:
    def change(header: Header) -> None:
        for stored in header.values():
            stored["data_offsets"] = [place + by for place in stored["data_offsets"]]

    return lying(change)


def move_one(by: int) -> Damage:
    def change(header: Header) -> None:
        header[NORM]["data_offsets"] = [place + by for place in header[NORM]["data_offsets"]]

    return lying(change)


def packed_small(folder: Path) -> None:
    """Every tensor as bytes, as quantizers store them."""
    tensors(lambda values: values.update({n: v.to(torch.int8) for n, v in values.items()}))(folder)


HEADERS: Cases = {
    "of 2^63 bytes": (raw_header("{}", 1 << 63), CUT),
    "of 2^64 - 1 bytes": (raw_header("{}", (1 << 64) - 1), CUT),
    "longer than the file": (raw_header("{}", 3), CUT),
    "shorter than it is": (raw_header("{}", 1), "is not readable JSON"),
    "of no bytes": (raw_header(""), "is not readable JSON"),
    "seven bytes in all": (data(WEIGHTS, b"\2\0\0\0\0\0\0"), CUT),
    "too long": (raw_header(one() + " " * 5 * MIB), "is too long to be one"),
    "no text": (raw_header(b"\xff\xfe{}"), "is not text"),
    "no JSON": (raw_header("{'a': 1}"), "is not readable JSON"),
    "a list": (raw_header("[]"), "must be a JSON object"),
    "a number": (raw_header("1"), "must be a JSON object"),
    "deep": (raw_header('{"a":' * 10_000 + "1" + "}" * 10_000), "is nested too deep"),
    "only opened": (raw_header('{"a":' * 100_000), "is nested too deep"),
    "a tensor twice": (raw_header(f"{one()[:-1]}, {one()[1:]}"), "names a key twice"),
    "a million lists": (raw_header('{"a":[' + "[]," * MIB + "1]}"), "holds too many values"),
    "a million words": (raw_header('{"a":[' + '"",' * MIB + "1]}"), "holds too many values"),
    "100,000 lists": (raw_header('{"a":[' + "[]," * 190_000 + "1]}"), VALID),
    "100,000 objects": (raw_header('{"a":[' + '{"b":1},' * 190_000 + "1]}"), VALID),
    "100,000 names": (
        raw_header("{" + ",".join(f'"{i}":1' for i in range(190_000)) + "}"),
        "10,000",
    ),
    "one name of 4 MB": (raw_header('{"' + "é" * 2_000_000 + '":1}'), VALID),
    "one emoji in 4 MB": (
        raw_header('{"\N{SLIGHTLY SMILING FACE}' + "a" * 4_000_000 + '":1}'),
        VALID,
    ),
    "NaN": (raw_header('{"a": NaN}'), "it holds NaN, which is no number"),
    "of no tensor": (raw_header("{}"), "there are only 0 tensors."),
    "metadata of numbers": (raw_header('{"__metadata__": {"a": 1}}'), "metadata that is no text"),
    "metadata in a list": (raw_header('{"__metadata__": ["a"]}'), "metadata that is no text"),
    "metadata in depth": (raw_header('{"__metadata__": {"a": {}}}'), "metadata that is no text"),
    "10,000 tensors": (raw_header(many(10_000)), "which its config asks for."),
    "10,001 tensors": (raw_header(many(10_001)), "holds more than 10,000 tensors."),
    "40,000 tensors": (raw_header(many(39_000)), "holds more than 10,000 tensors."),
}

ENTRIES: Cases = {
    "a number": (raw_header('{"a": 1}'), VALID),
    "null": (raw_header('{"a": null}'), VALID),
    "a list": (raw_header('{"a": ["F32", [0], [0, 0]]}'), VALID),
    "without a type": (raw_header('{"a": {"shape": [0], "data_offsets": [0, 0]}}'), VALID),
    "with a fourth word": (raw_header(one(stride=[1])), VALID),
    "of an unknown type": (raw_header(one(dtype="F31")), "of the unknown type F31"),
    "of an ugly type": (raw_header(one(dtype=UGLY)), "of the unknown type a\\n\\x1b[2J"),
    "of a type by number": (raw_header(one(dtype=32)), VALID),
    "of a type in a list": (raw_header(one(dtype=["F32"])), VALID),
    "of a shape by number": (raw_header(one(shape=0)), VALID),
    "of a shape in words": (raw_header(one(shape=["0"])), VALID),
    "of a shape with fractions": (raw_header(one(shape=[0.0])), VALID),
    "of a shape with true": (raw_header(one(shape=[True])), VALID),
    "of a negative shape": (raw_header(one(shape=[-1, 0])), VALID),
    "of two negative axes": (raw_header(one(shape=[-1, -3])), VALID),
    "of a shape that overflows": (raw_header(one(shape=[1 << 32, 1 << 32, 4])), VALID),
    "of a shape that overflows to nothing": (raw_header(one(shape=[1 << 62, 4])), VALID),
    "of nothing, but huge": (raw_header(one(shape=[1 << 40, 1 << 40, 0])), VALID),
    "of a shape of 90 digits": (raw_header(one(shape=[10**90])), VALID),
    "of a thousand axes": (raw_header(one(shape=[1] * 1000)), VALID),
    "in no place": (raw_header(one(data_offsets=[])), VALID),
    "in three places": (raw_header(one(data_offsets=[0, 0, 0])), VALID),
    "in a place by name": (raw_header(one(data_offsets={"0": 0, "1": 0})), VALID),
    "before the start": (raw_header(one(data_offsets=[-4, -4])), VALID),
    "backwards": (raw_header(one(data_offsets=[4, 0])), "has another length"),
    "behind the end": (raw_header(one(shape=[1], data_offsets=[0, 4])), CUT),
    "far behind the end": (raw_header(one(data_offsets=[1 << 62, 1 << 62])), "lies behind a gap"),
    "beyond counting": (raw_header(one(data_offsets=[0, 1 << 64])), VALID),
    "with an ugly name": (raw_header(json.dumps({UGLY: 1})), "describes a\\n\\x1b[2J"),
    "with half a character": (
        raw_header(one().replace('"a"', '"\\udc00"')),
        "describes \\udc00 in no valid way",
    ),
    "too long for its shape": (entry(WTE, shape=[12, 12]), "has another length"),
    "too short for its type": (entry(WTE, dtype="F64"), "has another length"),
    "half a byte long": (raw_header(one(dtype="F4", shape=[1])), "has another length"),
    "over another": (lying(lay_over), "lies over another tensor"),
    "in another's place": (lying(swap), "has another length"),
    "one byte early": (move_one(-1), "lies over another tensor"),
    "one byte late": (move_one(1), "lies "),
    "all one byte late": (shift(1), "lies behind a gap"),
    "before bytes of nobody": (lying(lambda header: None, b"1234"), "holds 4 bytes that belong"),
    "behind a gap": (lying(lambda header: header.pop(NORM)), "lies behind a gap"),
}

TENSORS: Cases = {
    "half of them cut off": (truncated(lambda size: size // 2), CUT),
    "a byte cut off": (truncated(lambda size: size - 1), CUT),
    "all cut off behind the header": (truncated(lambda size: size - 6000), CUT),
    "one missing": (tensors(lambda values: values.pop(WTE)), "lacks wte.weight, which"),
    "one by another name": (tensors(lambda v: v.update({UGLY[:7]: v.pop(NORM)})), "lacks ln_f"),
    "one turned": (with_tensor(WTE, torch.zeros(12, 13)), "has the shape (12, 13)"),
    "one flat": (with_tensor(WTE, torch.zeros(156)), "has the shape (156,)"),
    "one of no axis": (with_tensor(NORM, torch.zeros(())), "has the shape ()"),
    "one of too many axes": (with_tensor(NORM, torch.zeros(12, 1, 1, 1)), "has the shape (12, 1"),
    "one of nothing": (with_tensor(NORM, torch.zeros(0)), "has the shape (0,)"),
    "attention of two axes too few": (
        with_tensor("transformer.h.0.attn.c_attn.weight", torch.zeros(36)),
        "has the shape (36,)",
    ),
    "attention for another width": (
        with_tensor("transformer.h.0.attn.c_attn.weight", torch.zeros(12, 35)),
        "has the shape (12, 35)",
    ),
    "bytes": (as_type(WTE, torch.int8), "is quantized (I8), which is not read here"),
    "unsigned bytes": (as_type(WTE, torch.uint8), "is quantized (U8), which is not read here"),
    "eight-bit fractions": (as_type(WTE, torch.float8_e4m3fn), "is quantized (F8_E4M3)"),
    "other eight-bit fractions": (as_type(WTE, torch.float8_e5m2), "is quantized (F8_E5M2)"),
    "all bytes": (packed_small, "is quantized (I8), which is not read here"),
    "bytes of a quantizer": (
        all_of(packed_small, config(quantization_config={"quant_method": "bitsandbytes"})),
        "quantization_config",
    ),
    "whole numbers": (as_type(NORM, torch.int64), "is of type I64, which no weight has"),
    "truths": (as_type(NORM, torch.bool), "is of type BOOL, which no weight has"),
    "complex numbers": (as_type(NORM, torch.complex64), "is of type C64, which no weight has"),
    "NaN": (with_number(WTE, float("nan")), "wte.weight in one holds NaN"),
    "infinity": (with_number(NORM, float("inf")), "ln_f.weight in one holds NaN, infinite"),
    "less than all": (with_number(NORM, float("-inf")), "ln_f.weight in one holds NaN, infinite"),
    "half NaN": (with_number(WTE, float("nan"), torch.float16), "holds NaN"),
    "brain NaN": (with_number(WTE, float("nan"), torch.bfloat16), "holds NaN"),
    "double NaN": (with_number(WTE, float("nan"), torch.float64), "holds NaN"),
    "what 32 bits cannot hold": (with_number(WTE, 1e300, torch.float64), "or too large numbers"),
    "nothing but NaN": (
        tensors(lambda values: [value.fill_(float("nan")) for value in values.values()]),
        "holds NaN",
    ),
    "a layer too few": (
        tensors(lambda v: [v.pop(name) for name in list(v) if ".h.1." in name]),
        "which its config asks for",
    ),
    "as many as 200 layers need": (
        all_of(
            config(n_layer=200),
            raw_header(many(10_000)),
        ),
        "which its config asks for",
    ),
}

ALL = {
    f"{group} {name}": case
    for group, cases in {"header": HEADERS, "entry": ENTRIES, "tensors:": TENSORS}.items()
    for name, case in cases.items()
}


def test_hostile_weights_are_refused(gpt2: Path, opener: Opener) -> None:
    assert all_refused(opener, gpt2, ALL) == []


def test_a_model_that_is_larger_than_the_machine(gpt2: Path, opener: Opener) -> None:
    """Its file agrees with its config, and is a hole: it takes no room on the disk."""
    width = 299_997
    config(n_embd=width, n_inner=width)(gpt2)
    header, _ = unpacked((gpt2 / WEIGHTS).read_bytes())
    place = 0
    for stored in header.values():
        shape = [{12: width, 20: width, 36: 3 * width}.get(axis, axis) for axis in stored["shape"]]
        begin, place = place, place + 4 * math.prod(shape)
        stored |= {"shape": shape, "data_offsets": [begin, place]}
    content = packed(json.dumps(header).encode())
    (gpt2 / WEIGHTS).write_bytes(content)
    try:
        os.truncate(gpt2 / WEIGHTS, len(content) + place)
    except OSError:
        pytest.skip("this disk has no files of terabytes")
    assert "GB of memory, more than the " in refused(opener, gpt2)


def test_the_largest_numbers_are_read(gpt2: Path) -> None:
    """None of these is infinite, nor is their sum to be."""
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        most = torch.finfo(dtype).max
        with_tensor(WTE, torch.full((13, 12), most, dtype=dtype))(gpt2)
        weights = dict(load_checkpoint(gpt2).model.named_parameters())
        assert weights["decoder.embedding.weight"].eq(most).all()


def test_another_name_for_the_only_file(gpt2: Path) -> None:
    renamed(WEIGHTS, "gpt2-tiny.safetensors")(gpt2)
    assert load_checkpoint(gpt2).unused == ()


def test_a_tensor_that_is_not_read_may_be_anything(gpt2: Path) -> None:
    """Published files hold masks and counters beside the weights."""
    with_tensor("transformer.h.0.attn.masked_bias", torch.tensor(float("-inf")))(gpt2)
    with_tensor("transformer.h.0.attn.bias", torch.ones(2, 2).tril().bool())(gpt2)
    assert len(load_checkpoint(gpt2).unused) == 2
    assert open_weights(gpt2).dtype("transformer.h.0.attn.bias") == "BOOL"
