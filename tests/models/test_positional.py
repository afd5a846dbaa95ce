"""Positions: the numbers of the paper, and what each scheme promises."""

from __future__ import annotations

import math

import pytest
import torch

from models.config import POSITIONS as NAMES
from models.positional import (
    POSITIONS,
    AlibiPositions,
    LearnedPositions,
    PositionalEncoding,
    RotaryPositions,
    sinusoids,
)
from tests.models.building import SMALL


def test_the_second_row_of_the_paper_s_table() -> None:
    pe = PositionalEncoding(512).pe
    assert pe.shape == (1, 5000, 512)
    assert [round(x, 4) for x in pe[0, 1, :4].tolist()] == [0.8415, 0.5403, 0.8219, 0.5697]


def test_sinusoids_are_their_formula(subtests: pytest.Subtests) -> None:
    for d_model in [1, 2, 7, 12]:
        with subtests.test(d_model=d_model):
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
    encoding = PositionalEncoding(12, 16)
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(1))
    expected = sinusoids(torch.arange(5), 12).float().expand(2, -1, -1)
    torch.testing.assert_close(encoding(x) - x, expected)
    assert not list(encoding.parameters())
    assert not encoding.state_dict(), "a table that can be computed is in no checkpoint"


def test_the_product_of_two_positions_depends_on_their_distance() -> None:
    table = sinusoids(torch.arange(60), 512)
    products = table @ table.T
    for distance in (1, 5, 20):
        assert products.diagonal(distance).std() < 1e-12


def test_rotary_products_depend_on_distance_alone() -> None:
    rotary = RotaryPositions(8, theta=100.0)
    generator = torch.Generator().manual_seed(1)
    q, k = (torch.randn(1, 2, 1, 8, generator=generator).double() for _ in "qk")

    def product(query: int, key: int) -> torch.Tensor:
        at = [torch.tensor([position]) for position in (query, key)]
        return (rotary.rotation(at[0])(q) * rotary.rotation(at[1])(k)).sum(-1)

    for distance in (0, 1, 9):
        near = product(distance, 0)
        for start in (1, 7, 30):
            torch.testing.assert_close(product(start + distance, start), near, rtol=0, atol=1e-5)
    assert not torch.allclose(product(3, 0), product(0, 3))


def test_rotary_turns_pairs_by_their_frequency() -> None:
    rotary = RotaryPositions(4, theta=100.0)
    x = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 1, 1, 4)
    turned = rotary.rotation(torch.tensor([3]))(x)[0, 0, 0]
    for i, frequency in enumerate((1.0, 0.1)):
        a, b, angle = i + 1.0, i + 3.0, 3 * frequency
        assert turned[i].item() == pytest.approx(a * math.cos(angle) - b * math.sin(angle))
        assert turned[i + 2].item() == pytest.approx(b * math.cos(angle) + a * math.sin(angle))


def test_rotary_keeps_lengths_and_leaves_position_zero() -> None:
    rotary = RotaryPositions(8)
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(rotary.rotation(torch.arange(5))(x).norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(rotary.rotation(torch.zeros(5, dtype=torch.long))(x), x)


def test_rotary_takes_positions_of_each_sequence() -> None:
    rotary = RotaryPositions(8)
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(1))
    rows = torch.stack((torch.arange(5), torch.arange(5) + 3))
    torch.testing.assert_close(rotary.rotation(rows)(x)[1:], rotary.rotation(rows[1])(x[1:]))


SLOPES = {
    8: [2.0**-i for i in range(1, 9)],
    12: [2.0**-i for i in range(1, 9)] + [2.0**-0.5, 2.0**-1.5, 2.0**-2.5, 2.0**-3.5],
    1: [2.0**-8],
    3: [2.0**-4, 2.0**-8, 2.0**-2],
}


def test_alibi_slopes_are_the_paper_s(subtests: pytest.Subtests) -> None:
    for n_heads in SLOPES:
        with subtests.test(n_heads=n_heads):
            assert AlibiPositions(n_heads).slopes().tolist() == pytest.approx(SLOPES[n_heads])


def test_alibi_bias_falls_with_distance() -> None:
    alibi, positions = AlibiPositions(8), torch.arange(4)
    bias = alibi.bias(positions, positions)
    assert bias.shape == (1, 8, 4, 4)
    for q in range(4):
        for k in range(4):
            assert bias[0, 2, q, k].item() == -abs(q - k) / 8
    assert torch.equal(alibi.bias(positions, positions, slice(2, 3)), bias[:, 2:3])
    rows = torch.stack((positions, positions * 2))
    assert torch.equal(alibi.bias(rows, rows), torch.cat((bias, bias * 2)))


def test_learned_positions_are_looked_up() -> None:
    learned = LearnedPositions(12, 16)
    rows = torch.tensor([[0, 1, 2], [5, 0, 15]])
    assert torch.equal(learned.embed(rows), learned.table.weight[rows])


def test_each_scheme_acts_in_exactly_one_place(subtests: pytest.Subtests) -> None:
    for name in NAMES:
        with subtests.test(name=name):
            scheme = POSITIONS[name](SMALL, True)
            positions = torch.arange(5)
            acts = [
                scheme.embed(positions) is not None,
                scheme.rotation(positions) is not None,
                scheme.bias(positions, positions) is not None,
            ]
            assert sum(acts) == (name != "none")
