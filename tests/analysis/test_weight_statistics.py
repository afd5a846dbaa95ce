"""The numbers of a tensor, its norms by layer, and the cells of its picture."""

import math
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from explorer.analysis import weight_statistics
from explorer.analysis.weight_statistics import KINDS, by_layer, pooled, summarized, tensor_summary
from models import Transformer, TransformerConfig

sides = some.integers(1, 40)


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def test_a_matrix_counted_by_hand() -> None:
    found = tensor_summary("w", torch.tensor([[3.0, -4.0], [0.0, 5.0]]))
    assert (found.shape, found.count, found.mean) == ((2, 2), 4, 1.0)
    assert found.norm == pytest.approx(math.sqrt(50))
    assert found.rms == pytest.approx(math.sqrt(12.5))
    assert found.std == pytest.approx(math.sqrt(11.5))
    assert (found.lowest, found.highest, found.largest) == (-4.0, 5.0, 5.0)
    assert (found.zeros, found.share_of_zeros, found.not_finite) == (1, 0.25, 0)
    assert not found.is_constant


def test_numbers_agree_with_torch_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slice by slice, and of a view that is not in one piece."""
    monkeypatch.setattr(weight_statistics, "SLICE", 100)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        tensor = drawn(37, 23, dtype=dtype).mT
        found, exact = tensor_summary("w", tensor), tensor.double()
        assert found.mean == pytest.approx(exact.mean().item(), abs=1e-9), dtype
        assert found.std == pytest.approx(exact.std(correction=0).item(), rel=1e-9), dtype
        assert found.norm == pytest.approx(exact.norm().item(), rel=1e-9), dtype
        assert found.largest == exact.abs().max().item(), dtype


def test_what_is_not_finite_is_left_out_and_a_constant_is_told_from_what_is_nearly_one() -> None:
    found = tensor_summary("w", torch.tensor([1.0, math.nan, math.inf, -math.inf, 3.0]))
    assert (found.not_finite, found.mean, found.largest) == (3, 2.0, 3.0)
    assert tensor_summary("w", torch.tensor([math.nan])).not_finite == 1
    assert tensor_summary("w", torch.empty(0, 4)).count == 0
    constant = torch.full((1000,), 0.1)
    assert tensor_summary("w", constant).is_constant
    assert tensor_summary("w", constant).std == 0.0
    constant[7] = math.nextafter(0.2, 1.0)
    assert not tensor_summary("w", constant).is_constant


def test_every_parameter_is_met_once_also_when_it_is_tied() -> None:
    model = Transformer(TransformerConfig(d_model=16, n_heads=2, d_ff=24, tie_embeddings=True))
    found = list(summarized(model))
    assert [one.name for one in found] == [name for name, _ in model.named_parameters()]
    assert sum(one.count for one in found) == model.n_parameters


def test_norms_stand_by_layer_and_part() -> None:
    config = TransformerConfig(kind="encoder-decoder", d_model=16, n_heads=2, d_ff=24, n_layers=3)
    model = Transformer(config.replace(n_encoder_layers=2))
    with torch.no_grad():
        model.get_parameter("decoder.blocks.2.cross_attn.k_proj.weight").fill_(0.5)
    found = list(summarized(model))
    encoder, decoder = by_layer(found, "matrix")
    assert (encoder.stack, decoder.stack) == ("encoder", "decoder")
    assert (len(encoder.values), len(decoder.values)) == (2, 3)
    assert float(decoder.values[2, decoder.parts.index("cross_attn.k_proj.weight")]) == 0.5
    tables = [table for kind in KINDS for table in by_layer(found, kind)]
    inside = sum(int((~table.values.isnan()).sum()) for table in tables)
    assert inside == sum(".blocks." in one.name for one in found)

    ones = [tensor_summary(f"decoder.blocks.{n}.mlp.up_proj.bias", torch.ones(3)) for n in (0, 2)]
    (table,) = by_layer(ones, "bias")
    assert table.parts == ("mlp.up_proj.bias",)
    assert table.values[:, 0].isnan().tolist() == [False, True, False], "no such part there"


@settings(deadline=None, max_examples=60)
@given(sides, sides, some.integers(1, 12))
def test_every_cell_is_the_mean_of_its_block(height: int, width: int, most: int) -> None:
    tensor = drawn(height, width)
    shown, largest = pooled(tensor, "mean", most), pooled(tensor, "largest", most)
    down, across = shown.block
    assert shown.values.shape == (len(shown.rows), len(shown.columns))
    assert max(shown.values.shape) <= most
    for row, column in product(range(len(shown.rows)), range(len(shown.columns))):
        block = tensor[row * down : row * down + down, column * across :][:, :across]
        assert float(shown.values[row, column]) == pytest.approx(float(block.mean()), abs=1e-6)
        assert float(largest.values[row, column]) == float(block.abs().max())
    assert shown.is_ragged == (height % down > 0 or width % across > 0)


@settings(deadline=None, max_examples=40)
@given(some.integers(1, 5000))
def test_a_vector_is_shown_in_rows_and_nothing_is_lost(count: int) -> None:
    vector = drawn(count)
    shown = pooled(vector, "largest")
    (size,) = shown.block
    cells, filled = shown.values.flatten(), -(-count // size)
    assert max(shown.values.shape) <= 32
    assert int(cells.isnan().sum()) == len(cells) - filled
    assert float(cells[:filled].max()) == float(vector.abs().max())


def test_the_words_say_what_a_cell_a_row_and_a_column_are() -> None:
    for shown, sentence in [
        (pooled(drawn(768, 3072)), "Each cell is the mean of 6 × 24 weights."),
        (pooled(drawn(8, 8), "largest"), "Each cell is one |weight|."),
        (
            pooled(drawn(301, 64), "largest"),
            "Each cell is the largest |w| of 3 × 1 weights, of fewer at the lower and right edge.",
        ),
        (pooled(drawn(3000)), "Each cell is the mean of 3 weights, read row by row."),
    ]:
        assert shown.sentence == sentence
    shown = pooled(drawn(5, 4), most=2)
    assert (shown.rows, shown.columns) == (("0–2", "3–4"), ("0–1", "2–3"))
    assert pooled(drawn(2, 1)).rows == ("0", "1")
    with pytest.raises(ValueError, match="median"):
        pooled(drawn(2, 2), "median")


def test_what_is_no_number_stays_visible() -> None:
    tensor = torch.zeros(256, 256)
    tensor[3, 200] = math.nan
    for how in ("mean", "largest"):
        assert int(pooled(tensor, how).values.isnan().sum()) == 1


def test_a_large_matrix_needs_no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    pooled_row = weight_statistics._pooled_row

    def watched(part: Tensor, *rest: Any) -> Tensor:
        seen.append(part.numel())
        return pooled_row(part, *rest)

    monkeypatch.setattr(weight_statistics, "_pooled_row", watched)
    tensor = torch.zeros(1).expand(25_088, 1024)
    assert pooled(tensor).values.shape == (128, 128)
    assert max(seen) <= 196 * 1024
