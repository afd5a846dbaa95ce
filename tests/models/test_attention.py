"""Attention, fused and watched, who may attend to whom, and positions."""

import math
from collections.abc import Mapping
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from models.attention import MultiHeadAttention, attention_weights, scaled_dot_product_attention
from models.config import POSITIONS
from models.families import documents
from models.masking import both, causal_mask, keep_of, padding_mask
from models.model import build_positions
from models.position_biases import AlibiPositions
from models.positional import LearnedPositions, PositionalEncoding, sinusoids, token_positions
from models.tap import NO_TAP
from models.trace import RecordingTap
from tests.closeness import assert_close_to
from tests.tiny import SMALL, shake

GENERATOR = torch.Generator().manual_seed(1)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=GENERATOR, dtype=torch.float64).requires_grad_()


def some_mask() -> Tensor:
    """For 5 queries and 7 keys: one row, and the whole second sequence, may see nothing."""
    mask = torch.rand(2, 1, 5, 7, generator=GENERATOR) > 0.3
    mask[0, :, 2] = False
    mask[1] = False
    return mask


def torch_attention(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Values of one attention by the names that torch gives them."""
    renamed = {}
    for kind in ("weight", "bias"):
        renamed[f"in_proj_{kind}"] = torch.cat([values[f"{x}_proj.{kind}"] for x in "qkv"])
        renamed[f"out_proj.{kind}"] = values[f"o_proj.{kind}"]
    return renamed


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {n: p.grad for n, p in module.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_attention_is_torchs_with_a_mask_in_every_head(dtype: torch.dtype) -> None:
    ours = shake(MultiHeadAttention(12, 3).to(dtype))
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, dtype=dtype)
    theirs.load_state_dict(torch_attention(ours.state_dict()))
    generator = torch.Generator().manual_seed(3)
    x, memory = (torch.randn(2, length, 12, generator=generator).to(dtype) for length in (5, 7))
    mask = torch.rand(2, 3, 5, 7, generator=generator) < 0.5
    mask[..., 0] = True  # torch gives NaN to a query that sees nothing
    tap = RecordingTap()
    watched, fused = ours(x, memory, mask, tap=tap), ours(x, memory, mask)
    hidden = ~mask.flatten(0, 1)
    answer, expected = theirs(x, memory, memory, attn_mask=hidden, average_attn_weights=False)
    assert_close_to(tap.values["weights"], expected)
    assert_close_to(watched, answer)
    assert_close_to(fused, answer)
    for one in (fused, answer):
        one.square().sum().backward()
    mine, reference = torch_attention(gradients(ours)), gradients(theirs)
    assert mine.keys() == reference.keys()
    for name, gradient in reference.items():
        assert_close_to(mine[name], gradient, what=f"the gradient of {name}")


def test_a_masked_row_is_all_zeros_in_every_precision() -> None:
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        scores = (normal(2, 3, 5, 7) * 10).to(dtype).detach().requires_grad_()
        mask = some_mask()
        weights = attention_weights(scores, mask)
        assert (weights[(~mask).expand_as(weights)] == 0).all()
        (slope,) = torch.autograd.grad(weights.square().sum(), scores)
        assert slope.isfinite().all()
        assert (slope[1] == 0).all()


def test_a_mask_of_integers_is_that_of_booleans() -> None:
    q, k, v = normal(2, 4, 5, 8), normal(2, 4, 7, 8), normal(2, 4, 7, 8)
    attention, x, mask = MultiHeadAttention(12, 3).double(), normal(2, 5, 12), some_mask()
    square = mask[..., :5]
    for dtype, one in ((torch.int64, 1), (torch.int32, -1), (torch.uint8, 2)):
        given = scaled_dot_product_attention(q, k, v, one * mask.to(dtype))
        expected = scaled_dot_product_attention(q, k, v, mask)
        assert all(map(torch.equal, given, expected))
        for tap in (NO_TAP, RecordingTap()):
            attended = attention(x, mask=one * square.to(dtype), tap=tap)
            assert torch.equal(attended, attention(x, mask=square, tap=tap))
        document = documents.scaled_dot_product_attention(q, k, v, one * mask.to(dtype))
        assert all(map(torch.equal, document, expected))


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_mask_of_floats_is_refused() -> None:
    q, attention, x = normal(2, 4, 5, 8), MultiHeadAttention(12, 3).double(), normal(2, 5, 12)
    ones = causal_mask(5).int()
    added = torch.zeros(1, 1, 5, 5).masked_fill(ones == 0, -torch.inf)
    for mask in (added, ones.float()):
        for attend in (partial(attention, x), partial(scaled_dot_product_attention, q, q, q)):
            with pytest.raises(ValueError, match="A mask is of booleans, or of integers"):
                attend(mask=mask)


def test_masks() -> None:
    assert causal_mask(3)[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    for queries in range(1, 6):
        assert torch.equal(causal_mask(queries, 5), causal_mask(5)[:, :, 5 - queries :])
    causal = causal_mask(3)
    padding = padding_mask(torch.tensor([[True, True, False], [False, True, True]]))
    assert both(None, None) is None
    assert both(causal, None) is causal
    assert both(None, padding) is padding
    combined = both(causal, padding)
    assert combined is not None
    assert combined[1, 0].tolist() == [[False] * 3, [False, True, False], [False, True, True]]


def test_padding_is_not_kept_and_not_counted() -> None:
    ids = torch.tensor([[0, 5, 0], [0, 3, 4]])
    assert keep_of(ids, None) is None
    assert keep_of(ids, 9) is None, "nothing is padding: no mask to pay for"
    kept, begun = keep_of(ids, 0), keep_of(ids, 0, pad_begins=True)
    masks = [each is not None and each.int().tolist() for each in (kept, begun)]
    assert masks == [[[0, 1, 0], [0, 1, 1]], [[1, 1, 0], [1, 1, 1]]]
    keep = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 0]], dtype=torch.bool)
    positions = token_positions(keep)
    assert positions[keep].tolist() == [0, 1, 0, 1, 2, 0, 1, 2]
    assert (positions >= 0).all()


X = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(1))


def test_sinusoids_are_their_formula() -> None:
    second = PositionalEncoding(512).pe[0, 1, :4].tolist()
    assert [round(x, 4) for x in second] == [0.8415, 0.5403, 0.8219, 0.5697], "the paper's table"
    for d_model in (1, 2, 7, 12):
        table = PositionalEncoding(d_model, max_len=50).pe[0]
        for position in (0, 1, 17, 49):
            for i in range(d_model):
                angle = position / 10_000 ** (i // 2 * 2 / d_model)
                expected = math.cos(angle) if i % 2 else math.sin(angle)
                assert table[position, i].item() == pytest.approx(expected, abs=1e-5)


def test_sinusoids_far_out() -> None:
    """Single precision would be off by 4e-4."""
    exact = torch.arange(5000).double()[:, None] / 10_000 ** (torch.arange(0, 64, 2).double() / 64)
    assert (sinusoids(torch.arange(5000), 64)[:, ::2] - exact.sin()).abs().max() < 1e-10


def test_as_a_module_it_adds() -> None:
    encoding, x = PositionalEncoding(8, 16), X[0]
    assert_close_to(encoding(x) - x, sinusoids(torch.arange(5), 8).float().expand(3, -1, -1))
    assert not list(encoding.parameters())
    assert not encoding.state_dict(), "a table that can be computed is in no checkpoint"


def test_alibi_falls_with_distance() -> None:
    """With the slopes that Bloom has in `tests/parity`."""
    alibi, positions = AlibiPositions(8), torch.arange(4)
    bias = alibi.bias(positions, positions)
    assert_close_to(bias[0, 2], -(positions[:, None] - positions).abs() / 8)
    assert torch.equal(alibi.bias(positions, positions, slice(2, 3)), bias[:, 2:3])
    rows = torch.stack((positions, positions * 2))
    assert torch.equal(alibi.bias(rows, rows), torch.cat((bias, bias * 2)))


def test_each_scheme_acts_in_exactly_one_place() -> None:
    for name in POSITIONS:
        scheme, positions = build_positions(SMALL.replace(positions=name), True), torch.arange(5)
        ways = scheme.embed, scheme.rotation, partial(scheme.bias, positions)
        assert sum(way(positions) is not None for way in ways) == (name != "none"), name
    learned, rows = LearnedPositions(12, 16), torch.tensor([[0, 1, 2], [5, 0, 15]])
    assert torch.equal(learned.embed(rows), learned.table.weight[rows])
