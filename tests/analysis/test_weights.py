"""The numbers of weights, their singular values, and the rank of a change."""

import math
from copy import deepcopy
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as some
from torch import Tensor

from explorer.analysis import singular_values, weight_statistics
from explorer.analysis.weight_change import UnpairedMatrix, rank_of, rank_of_change, weight_changes
from explorer.analysis.weight_statistics import (
    WEIGHT_KINDS,
    by_layer,
    pooled,
    summarized,
    tensor_summary,
)
from models import Transformer, TransformerConfig
from models.lora import add_lora, lora_leaves, merge
from tests.closeness import assert_close_to

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
    tables = [table for kind in WEIGHT_KINDS for table in by_layer(found, kind)]
    inside = sum(int((~table.values.isnan()).sum()) for table in tables)
    assert inside == sum(".blocks." in one.name for one in found)

    ones = [tensor_summary(f"decoder.blocks.{n}.mlp.up_proj.bias", torch.ones(3)) for n in (0, 2)]
    (table,) = by_layer(ones, "bias")
    assert table.parts == ("mlp.up_proj.bias",)
    assert table.values[:, 0].isnan().tolist() == [False, True, False], "no such part there"


@given(sides, sides, some.integers(1, 12))
def test_every_cell_is_the_mean_or_the_largest_of_its_block(
    height: int, width: int, most: int
) -> None:
    tensor = drawn(height, width)
    shown, largest = pooled(tensor, "mean", most), pooled(tensor, "largest", most)
    down, across = block = shown.block
    assert shown.values.shape == (len(shown.rows), len(shown.columns))
    assert max(shown.values.shape) <= most
    means = F.avg_pool2d(tensor[None], block, ceil_mode=True, count_include_pad=False)
    assert_close_to(shown.values, means[0])
    assert torch.equal(largest.values, F.max_pool2d(tensor[None].abs(), block, ceil_mode=True)[0])
    assert shown.is_ragged == (height % down > 0 or width % across > 0)


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
    ragged = "weights, of fewer at the lower and right edge"
    for shown, sentence in [
        (pooled(drawn(768, 3072)), "Each cell is the mean of 6 × 24 weights."),
        (pooled(drawn(8, 8), "largest"), "Each cell is one |weight|."),
        (pooled(drawn(301, 64), "largest"), f"Each cell is the largest |w| of 3 × 1 {ragged}."),
        (pooled(drawn(3000)), "Each cell is the mean of 3 weights, read row by row."),
    ]:
        assert shown.sentence == sentence
    shown = pooled(drawn(5, 4), most=2)
    assert (shown.rows, shown.columns) == (("0–2", "3–4"), ("0–1", "2–3"))
    assert pooled(drawn(2, 1)).rows == ("0", "1")
    with pytest.raises(ValueError, match="median"):
        pooled(drawn(2, 2), "median")
    tensor = torch.zeros(256, 256)
    tensor[3, 200] = math.nan
    for how in ("mean", "largest"):
        assert int(pooled(tensor, how).values.isnan().sum()) == 1


SHAPES = [(64, 64), (64, 256), (300, 40), (512, 512), (16, 900)]


def test_a_diagonal_has_its_entries() -> None:
    found = singular_values.singular_values_of(torch.diag(torch.tensor([1.0, -4.0, 2.0])))
    assert found.values.tolist() == pytest.approx([4, 2, 1])
    assert found.stable_rank == pytest.approx(21 / 16)
    assert [found.directions_for(share) for share in (0.5, 0.9, 1.0)] == [1, 2, 3]
    assert found.rms == pytest.approx(math.sqrt(21 / 9))
    nothing = singular_values.singular_values_of(torch.zeros(4, 6))
    assert (nothing.stable_rank, nothing.directions_for(0.9), nothing.above_edge) == (0.0, 0, 0)


def test_a_large_matrix_says_how_its_values_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(singular_values, "DECOMPOSED", 700)
    for shape in ((40, 20), (20, 50), (33, 33)):
        shares: list[float] = []
        found = singular_values.singular_values_of(drawn(*shape), shares.append)
        assert shares[-1] == 1
        assert "eigenvalues of the matrix times its transpose" in found.method
        assert_close_to(found.values, torch.linalg.svdvals(drawn(*shape).double()), 1e-6)
    monkeypatch.setattr(singular_values, "MULTIPLIED", 700)
    with pytest.raises(singular_values.SingularValuesError, match="40 × 20 is too large"):
        singular_values.singular_values_of(drawn(40, 20))
    broken = drawn(8, 8)
    broken[1, 2] = math.nan
    for tensor in (drawn(8), torch.empty(0, 3), broken):
        with pytest.raises(singular_values.SingularValuesError):
            singular_values.singular_values_of(tensor)


def test_noise_is_where_the_law_says() -> None:
    for shape in SHAPES:
        found = singular_values.singular_values_of(0.02 * drawn(*shape))
        expected = singular_values.random_singular_values(found.shape, found.rms)
        assert len(expected) == len(found.values)
        assert bool((expected[:-1] >= expected[1:]).all()), shape
        assert float((found.values - expected).abs().mean()) < 0.02 * found.edge, shape
        assert float(expected[0]) < found.edge, shape
        squares = float(expected.square().sum()), float(found.values.square().sum())
        assert squares[0] == pytest.approx(squares[1], rel=0.01), shape


def test_noise_of_any_kind_passes_and_one_planted_direction_does_not() -> None:
    """Uniform noise has the same edge; what cannot be judged is not called noise."""
    for (rows, columns), seed in product(SHAPES, range(2)):
        matrix = drawn(rows, columns, seed=seed)
        flat = torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed)) - 0.5
        assert singular_values.looks_random(0.02 * matrix), (rows, columns, seed)
        assert singular_values.looks_random(flat), (rows, columns, seed)
        planted = drawn(rows, 1, seed=seed + 1) @ drawn(1, columns, seed=seed + 2)
        strength = 2.5 * (math.sqrt(rows) + math.sqrt(columns)) / math.sqrt(rows * columns)
        assert not singular_values.looks_random(matrix + strength * planted), (rows, columns, seed)
    assert not singular_values.looks_random(drawn(2, 64))
    assert not singular_values.looks_random(torch.zeros(16, 16))
    assert not singular_values.looks_random(torch.full((16, 16), math.nan))


CONFIG = TransformerConfig(vocab_size=20, d_model=16, n_layers=2, n_heads=2, d_ff=32, max_len=8)


def adapted(model: Transformer, rank: int) -> Transformer:
    """A copy with adapters whose product is not zero."""
    made = add_lora(deepcopy(model), rank, targets=("q_proj", "down_proj"))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for leaf in lora_leaves(made).values():
            leaf.lora_B.weight.normal_(generator=generator)
    return merge(made)


@pytest.mark.parametrize("rank", [1, 3])
def test_an_adapter_changes_its_matrices_by_its_rank_and_no_others(rank: int) -> None:
    model = Transformer(CONFIG, seed=0)
    other = adapted(model, rank)
    found = weight_changes(model, other)
    names = [each.name for each in found.matrices]
    assert len(names) == sum("q_proj" in name or "down_proj" in name for name in names) > 3
    assert found.compared > len(names)
    assert found.unpaired == ()
    mine, theirs = (dict(each.named_parameters()) for each in (model, other))
    for each in found.matrices:
        change = theirs[f"{each.name}.weight"] - mine[f"{each.name}.weight"]
        assert rank_of_change(model, other, each.name) == rank
        assert each.shape == tuple(change.shape)
        expected = float(change.detach().norm() / mine[f"{each.name}.weight"].detach().norm())
        assert each.relative == pytest.approx(expected, rel=1e-5)


def test_a_matrix_without_a_partner_of_its_shape_is_named_with_both_shapes() -> None:
    model = Transformer(CONFIG, seed=0)
    assert weight_changes(model, deepcopy(model)).matrices == ()
    other = Transformer(CONFIG.replace(d_ff=64, n_layers=1), seed=0)
    found = weight_changes(model, other)
    assert UnpairedMatrix("decoder.blocks.0.mlp.up_proj", (32, 16), (64, 16)) in found.unpaired
    assert UnpairedMatrix("decoder.blocks.1.mlp.up_proj", (32, 16), None) in found.unpaired
    back = weight_changes(other, model)
    assert UnpairedMatrix("decoder.blocks.1.mlp.up_proj", None, (32, 16)) in back.unpaired
    assert back.compared == found.compared
    assert len(found.unpaired) + found.compared == sum(w.dim() == 2 for w in model.parameters())


def test_a_rank_is_that_of_the_singular_values_and_none_of_what_is_not_finite() -> None:
    for shape in ((3, 9), (9, 3)):
        left, values, right = torch.linalg.svd(drawn(*shape).double(), full_matrices=False)
        values[1:] = values[0] * torch.tensor([0.011, 0.009])
        assert rank_of(left @ values.diag() @ right) == 2
    assert rank_of(torch.tensor([[1.0, torch.inf], [0.0, 1.0]]).double()) == 0
