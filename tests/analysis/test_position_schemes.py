"""What the Positions page shows is what the core does."""

from typing import Any

import pytest
import torch

from explorer.analysis import position_schemes as schemes
from explorer.analysis.position_schemes import learned_table, position_scheme
from models import Transformer, TransformerConfig
from models.config import POSITIONS
from models.positional import PositionalEncoding
from tests.closeness import assert_close_to

SMALL = TransformerConfig(d_model=16, n_heads=2, n_layers=1, d_ff=16, max_len=20)


def made(name: str, model: Transformer | None = None, width: int | None = None) -> Any:
    return position_scheme(name, model or Transformer(SMALL), 20, width=width)


def spread(found: Any) -> float:
    """How far products of two positions that are equally far apart differ at most."""
    for _, smallest, mean, largest in found.against_offset():
        assert smallest - 1e-4 <= mean <= largest + 1e-4
    apart = [found.products.diagonal(-offset) for offset in range(len(found.products))]
    by_hand = max(float(each.max() - each.min()) for each in apart)
    assert found.spread == pytest.approx(by_hand)
    return by_hand


def test_learned_positions_are_the_models_own() -> None:
    model = Transformer(SMALL.replace(positions="learned"))
    table = learned_table(model)
    assert table is not None
    assert torch.equal(made("learned", model).table, table[:20])
    assert position_scheme("learned", Transformer(SMALL), 7) is None


def test_what_follows_from_the_distance_alone_is_told_from_what_does_not() -> None:
    """Sinusoids and rotations do; what was learned knows no distance."""
    learned = Transformer(SMALL.replace(positions="learned"))
    for name, knows in {"sinusoidal": True, "rotary": True, "learned": False}.items():
        found = made(name, learned if name == "learned" else None)
        assert (found.knows_distance, found.by_cosine().knows_distance) == (knows, knows), name
        assert spread(found) < 1e-4 if knows else spread(found) > 1e-2, name
    assert not made("sinusoidal", width=7).knows_distance
    for names in (schemes.SCHEMES, schemes.EXPLANATIONS, schemes.CODE):
        assert set(names) == set(POSITIONS)
    waves = made("sinusoidal")
    values = [row["value"] for row in waves.wave(0)[:20]]
    assert values == pytest.approx(torch.sin(torch.arange(20.0)).tolist(), abs=1e-5)
    assert waves.wavelengths[0] == pytest.approx(2 * torch.pi)


def test_cosine_similarity_and_the_straight_lines_of_alibi() -> None:
    found = made("learned", Transformer(SMALL.replace(positions="learned")))
    by_cosine = found.by_cosine()
    norms = found.table.norm(dim=-1)
    assert_close_to(by_cosine.products, found.products / norms[:, None] / norms)
    assert (found.unit, by_cosine.unit) == ("product", "cosine similarity")
    assert made("alibi").by_cosine().unit == "bias", "there are no vectors to compare"
    for head in range(2):
        alibi = position_scheme("alibi", Transformer(SMALL), 9, head)
        assert alibi is not None
        lines = {(name, offset): value for name, offset, value in alibi.by_head}
        assert float(alibi.products[8, 0]) == pytest.approx(lines[f"head {head}", 8])
        assert not alibi.products.diagonal().any()


def test_an_odd_width_ends_in_a_sine_without_its_cosine() -> None:
    found = made("sinusoidal", width=7)
    last = torch.sin(torch.arange(20.0) / 10_000 ** (6 / 7))
    assert_close_to(found.table[:, 6].float(), last)
    assert found.pairs == ((0, 1), (2, 3), (4, 5))
    assert_close_to(PositionalEncoding(7, 20).pe[0], found.table.float())
    assert spread(found) > 1e-6, "the distance alone no longer counts"
