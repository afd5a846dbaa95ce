"""The numbers of a GGUF file: of every type, in any order of reading."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as Kind
from gguf.quants import dequantize, quantize

from models.loading.checkpoint import CheckpointError, load_checkpoint
from models.loading.gguf_header import GgufTensor, read_gguf_header
from models.loading.gguf_weights import (
    BLOCKS_AT_ONCE,
    PLAIN_TYPES,
    QUANTIZED_TYPES,
    gguf_weights,
    numbers,
)
from tests.models.loading.gguf_damage import NAME, good
from tests.models.loading.gguf_damage import Tensor as Stored

SCALES = {
    "Q8_0": (0, 2), "Q4_0": (0, 2), "Q4_1": (0, 4), "Q5_0": (0, 2), "Q5_1": (0, 4),
    "Q2_K": (80, 84), "Q3_K": (108, 110), "Q4_K": (0, 4), "Q5_K": (0, 4), "Q6_K": (208, 210),
    "TQ1_0": (52, 54), "TQ2_0": (64, 66), "IQ1_S": (0, 2), "IQ4_NL": (0, 2), "IQ4_XS": (0, 2),
    "IQ2_XXS": (0, 2), "IQ2_XS": (0, 2), "IQ2_S": (0, 2), "IQ3_XXS": (0, 2), "IQ3_S": (0, 2),
}  # fmt: skip
"""Where the 16-bit scales of a block lie, which random bytes would make infinite."""


def test_a_quantized_model_has_the_numbers_that_the_library_reads(tmp_path: Path) -> None:
    """One matrix of the model in each type that the library writes."""
    exact = np.random.default_rng(1).standard_normal((64, 32)).astype(np.float32)
    for kind in (Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1):
        stored = quantize(exact, kind)
        gate = Stored((32, 64), int(kind), content=stored.tobytes())
        draft = good().with_tensors({"blk.0.ffn_gate.weight": gate})
        (tmp_path / NAME).write_bytes(draft.written())
        found = dict(load_checkpoint(tmp_path).model.named_parameters())
        ours = found["decoder.blocks.0.mlp.gate_proj.weight"]
        assert ours.dtype == torch.float32
        assert torch.equal(ours, torch.from_numpy(dequantize(stored, kind))), kind
        assert 0 < (ours - torch.from_numpy(exact)).abs().max() < 0.5, kind


@pytest.mark.parametrize("name", [*PLAIN_TYPES, *QUANTIZED_TYPES])
def test_every_type_is_read_as_by_the_library(name: str) -> None:
    """More blocks than become numbers at once, of random bytes."""
    kind = Kind[name]
    per_block, size = GGML_QUANT_SIZES[kind]
    count = BLOCKS_AT_ONCE + 5 if per_block > 1 else 999
    drawn = torch.Generator().manual_seed(1)
    blocks = torch.randint(256, (count, size), dtype=torch.uint8, generator=drawn)
    if name in SCALES:
        start, end = SCALES[name]
        scales = torch.randn(count, (end - start) // 2, generator=drawn).half()
        blocks[:, start:end] = scales.view(torch.uint8)
    elif name in PLAIN_TYPES:
        blocks = torch.randn(count, generator=drawn).to(PLAIN_TYPES[name]).view(torch.uint8)
        blocks = blocks.view(count, size)
    raw = blocks.flatten()
    found = numbers(raw, GgufTensor(name, (count, per_block), 0, len(raw)))
    with np.errstate(all="ignore"):
        whole = dequantize(blocks.numpy(), kind)
    expected = torch.from_numpy(whole).float().view(count, per_block)
    assert torch.equal(found.float().nan_to_num(), expected.nan_to_num())


def test_what_the_library_can_read_is_read() -> None:
    """A type that a later version knows has to be added by hand; one has scales beside it."""
    known = {kind.name for kind in gguf.quants._type_traits} - {"NVFP4"}
    assert known | {"F32", "F16"} == {*PLAIN_TYPES, *QUANTIZED_TYPES}


def test_tensors_are_read_in_any_order_and_a_header_once(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(good().written())
    header = read_gguf_header(tmp_path / NAME)
    assert read_gguf_header(tmp_path / NAME) is header
    weights = gguf_weights(header)
    with weights.open() as read:
        for name in reversed(weights.names):
            assert read(name).shape == weights.shape(name)
            assert (read(name) == 0.01).all()
    (tmp_path / NAME).write_bytes(good(layers=3).written())
    assert len(read_gguf_header(tmp_path / NAME).tensors) > len(header.tensors)


def test_values_are_those_that_were_written(tmp_path: Path) -> None:
    """A number of 32 bits comes back as the short decimal that it was."""
    writer = gguf.GGUFWriter(tmp_path / NAME, "llama")
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500_000.0)
    writer.add_float64("a", 0.1)
    writer.add_array("b", ["x", "", "yz"])
    writer.add_array("c", [1, -2, 3])
    writer.add_bool("d", True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    values = read_gguf_header(tmp_path / NAME).values
    assert values["llama.attention.layer_norm_rms_epsilon"] == 1e-5
    assert values["llama.rope.freq_base"] == 500_000
    assert (values["a"], values["d"]) == (0.1, True)
    assert values["b"].items() == (b"x", b"", b"yz")
    assert values["c"].items() == (1, -2, 3)
    with pytest.raises(CheckpointError, match=r"head_count must be given as a whole number\.$"):
        load_checkpoint(tmp_path)
