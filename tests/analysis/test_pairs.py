"""One query and one key: every number is the pass's, for every kind of attention."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.analysis import pairs
from explorer.analysis.pairs import by_distance, pair, strongest
from explorer.parts import site
from explorer.reading import Reading
from models.positional import AlibiPositions, RotaryPositions
from tests.analysis.conftest import read


def places(found: Reading) -> Any:
    """Every kind, layer and head of a reading, with some queries and keys."""
    for part in found.parts:
        last = (len(found.rows(part.name)) - 1, len(found.columns(part.name)) - 1)
        for layer in range(part.layers):
            for head in range(part.heads):
                for query, key in {(0, 0), (last[0], min(1, last[1])), last, (0, last[1])}:
                    yield part.name, layer, head, query, key


def test_every_number_is_that_of_the_pass(found: Reading) -> None:
    for part, layer, head, query, key in places(found):
        one = pair(found, part, layer, head, query, key)
        trace, at = found.trace, site(part, layer)
        score = float(trace.scores(at, head)[0, query, key])
        weight = float(trace.weights(at, head)[0, query, key])
        assert one.score == score
        assert one.weight == weight
        product = one.dot * one.scale
        bent = product if one.cap is None else one.cap * math.tanh(product / one.cap)
        assert bent == pytest.approx(score, abs=1e-6)
        assert one.biased == pytest.approx(score + (one.bias or 0.0), abs=1e-6)
        share = math.exp(one.biased - one.largest) / one.total if one.allowed else 0.0
        assert share == pytest.approx(weight, abs=1e-6)
        assert one.difference < 1e-6
        assert one.allowed == bool(found.mask(part, layer)[query, key])
        assert one.seen == int(found.mask(part, layer)[query].sum())


def test_a_planted_mistake_is_seen_in_the_difference(found: Reading) -> None:
    part = found.parts[-1].name
    name = f"{site(part, 0)}.weights"
    found.trace.values[name] = found.trace.weights(site(part, 0)).clone()
    found.trace.values[name][:, 0, -1] *= 0.9
    assert pair(found, part, 0, 0, len(found.rows(part)) - 1, 0).difference > 1e-3


def test_a_distance_is_shown_where_positions_act_on_the_score(found: Reading) -> None:
    for part, layer, head, query, key in places(found):
        curve = by_distance(found, part, layer, head, query, key)
        acts = found.config.positions in ("rotary", "alibi", "relative")
        assert (curve is not None) == (acts and part != "decoder.cross_attn")
        if curve is None:
            continue
        one = pair(found, part, layer, head, query, key)
        assert curve.actual == query - key
        own = dict(curve.points)[curve.actual]
        assert own == pytest.approx(one.score if curve.what == "score" else one.bias, abs=1e-6)


def test_a_key_is_turned_as_the_model_turns_it(tmp_path: Path) -> None:
    for name in ("rotary", "partly", "stretched", "grouped"):
        found = read(tmp_path, name)
        part = found.parts[0].name
        query, key = 4, 2
        curve = by_distance(found, part, 0, 1, query, key)
        assert curve is not None
        stack = getattr(found.trace.model, part.split(".")[0])
        attention, positions = stack.blocks[0].self_attn, stack.positions
        assert isinstance(positions, RotaryPositions)
        residual = stack.blocks[0].self_residual
        normed = residual.norm(found.trace[site(part, 0).replace("self_attn", "resid_pre")])
        k = attention.k_norm(attention.split(attention.k_proj(normed)))
        q = attention.q_norm(attention.split(attention.q_proj(normed)))
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
        for distance, value in curve.points:
            turned = positions.rotation(torch.tensor([query]))(q[:, 1:2, query : query + 1])
            place = torch.tensor([query - distance])
            moved = positions.rotation(place)(k[:, 1:2, key : key + 1])
            expected = float((turned * moved).sum()) * found.config.scale
            assert value == pytest.approx(expected, abs=1e-5), (name, distance)


def test_alibi_is_a_straight_line(tmp_path: Path) -> None:
    found = read(tmp_path, "alibi")
    curve = by_distance(found, "decoder.self_attn", 0, 1, 4, 1)
    assert curve is not None
    slope = float(AlibiPositions(2).slopes()[1])
    for distance, value in curve.points:
        assert value == pytest.approx(-slope * abs(distance))


def test_a_long_reach_is_drawn_in_steps_and_holds_the_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "MOST_DISTANCES", 5)
    found = read(tmp_path, "alibi")
    curve = by_distance(found, "decoder.self_attn", 0, 0, 4, 1)
    assert curve is not None
    assert curve.step > 1
    assert len(curve.points) <= 7
    assert 3 in dict(curve.points)


def test_the_strongest_key_and_the_order_by_size(found: Reading) -> None:
    for part, layer, head, query, key in places(found):
        row = found.weights(part, layer, head)[query]
        assert row[strongest(found, part, layer, head, query)] == row.max()
        one = pair(found, part, layer, head, query, key)
        sizes = one.products.abs()[one.by_size()].tolist()
        assert sizes == sorted(sizes, reverse=True)


def test_a_row_that_sees_nothing_and_numbers_that_are_none(tmp_path: Path) -> None:
    found = read(tmp_path, "decoder")
    at = site("decoder.self_attn", 0)
    mask = found.trace.values[f"{at}.mask"].clone().expand(1, 1, -1, -1).clone()
    mask[:, :, 2] = False
    found.trace.values[f"{at}.mask"] = mask
    one = pair(found, "decoder.self_attn", 0, 0, 2, 1)
    assert (one.weight, one.seen, one.total, one.allowed) == (0.0, 0, 0.0, False)
    found.trace.values[f"{at}.q"] = torch.full_like(found.trace.values[f"{at}.q"], torch.nan)
    assert math.isnan(pair(found, "decoder.self_attn", 0, 0, 3, 1).weight)
    assert strongest(found, "decoder.self_attn", 0, 0, 3) == 0


def test_heads_that_share_a_key_are_named(tmp_path: Path) -> None:
    found = read(tmp_path, "grouped")
    first, third = (pair(found, "decoder.self_attn", 0, head, 3, 1) for head in (0, 2))
    assert (first.sharing, third.sharing) == (range(2), range(2, 4))
    assert torch.equal(first.k, pair(found, "decoder.self_attn", 0, 1, 3, 1).k)
    assert not torch.equal(first.k, third.k)
