"""Positions: the numbers of the paper, and what each scheme promises."""

import math
from functools import partial

import pytest
import torch

from models.config import POSITIONS
from models.model import build_positions
from models.position_biases import AlibiPositions
from models.positional import LearnedPositions, PositionalEncoding, sinusoids
from tests.closeness import assert_close_to
from tests.tiny import SMALL

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
    """Single precision would be off by 4e-4 at position 4999."""
    exact = torch.arange(5000).double()[:, None] / 10_000 ** (torch.arange(0, 64, 2).double() / 64)
    assert (sinusoids(torch.arange(5000), 64)[:, ::2] - exact.sin()).abs().max() < 1e-10


def test_as_a_module_it_adds() -> None:
    encoding, x = PositionalEncoding(8, 16), X[0]
    assert_close_to(encoding(x) - x, sinusoids(torch.arange(5), 8).float().expand(3, -1, -1))
    assert not list(encoding.parameters())
    assert not encoding.state_dict(), "a table that can be computed is in no checkpoint"


SLOPES = {
    8: [2.0**-i for i in range(1, 9)],
    12: [2.0**-i for i in range(1, 9)] + [2.0**-0.5, 2.0**-1.5, 2.0**-2.5, 2.0**-3.5],
    1: [2.0**-8],
    3: [2.0**-4, 2.0**-8, 2.0**-2],
}


def test_alibi_has_the_paper_s_slopes_and_falls_with_distance() -> None:
    for n_heads, slopes in SLOPES.items():
        assert AlibiPositions(n_heads).slopes().tolist() == pytest.approx(slopes)
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
