"""The numbers of a head: its stages, one pair, its part of the residual stream; all the pass's."""

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.analysis.query_key import (
    HeadStages,
    by_distance,
    head_stages_of,
    query_key_pair,
    row_scale,
    strongest,
)
from explorer.analysis.residual_writes import block_writes, key_contribution
from explorer.catalog import opened_model
from explorer.catalog.attention_parts import site
from explorer.inference import forward_pass
from explorer.inference.forward_pass import ForwardPass
from explorer.views.attention.query_key_view import stream_terms
from models import trace
from models.position_biases import AlibiPositions
from models.rotary import RotaryPositions
from tests.analysis.conftest import inputs_of, read
from tests.closeness import assert_close_to as close

SELF = "decoder.self_attn"


def every_head(found: ForwardPass) -> Iterator[tuple[str, int, int]]:
    for part in found.parts:
        for layer, head in product(range(part.layers), range(part.heads)):
            yield part.name, layer, head


def corners(found: ForwardPass, part: str) -> set[tuple[int, int]]:
    """Some queries and keys."""
    query, key = len(found.rows(part)) - 1, len(found.columns(part)) - 1
    return {(0, 0), (query, min(1, key)), (query, key), (0, key)}


def whole(found: ForwardPass, part: str, layer: int = 0, head: int = 0) -> HeadStages:
    rows, columns = range(len(found.rows(part))), range(len(found.columns(part)))
    return head_stages_of(found, part, layer, head, rows, columns)


def test_in_single_precision_every_ledger_of_a_shipped_model_is_right_to_a_millionth() -> None:
    """Of a weight, as long as its scores are below four: float32 rounds larger ones by more."""
    for model in ("translation", "shakespeare", "reviews"):
        opened = opened_model.open_model(model)
        found = forward_pass.run_text(opened, opened.example)
        for part, layer, head in every_head(found):
            scores = found.scores(part, layer, head)
            most = 1e-6 * max(1.0, float(scores[scores.isfinite()].abs().max()) / 4)
            assert whole(found, part, layer, head).difference <= most, model
            queries = range(len(found.rows(part)))
            for query in queries:
                assert query_key_pair(found, part, layer, head, query, 0).difference <= most, model
            last = key_contribution(found, part, layer, head, queries[-1], 0)
            assert last.difference <= 1e-6, model


def test_a_planted_mistake_is_seen_in_every_difference(found: ForwardPass) -> None:
    part = found.parts[0].name
    at, last = site(part, 0), len(found.rows(part)) - 1
    after = found.trace[f"{part.split('.')[0]}.0.resid_post"][0, last]
    found.trace.values[f"{at}.weights"] = found.trace.weights(at) * 1.01
    assert whole(found, part).difference > 1e-3
    assert query_key_pair(found, part, 0, 0, last, 0).difference > 1e-3
    found.trace.values[f"{at}.v"] = found.trace[f"{at}.v"] * 1.1
    assert key_contribution(found, part, 0, 0, last, 0).difference > 1e-4
    again = block_writes(found, part.split(".")[0], 0, torch.tensor([last])).after[0]
    assert not torch.allclose(again, after, rtol=1e-6, atol=1e-6)


def test_every_stage_is_the_one_of_the_pass_and_made_of_the_one_before(found: ForwardPass) -> None:
    for part, layer, head in every_head(found):
        one, at = whole(found, part, layer, head), site(part, layer)
        assert torch.equal(one.scaled, found.trace.scores(at, head)[0])
        assert torch.equal(one.weights, found.trace.weights(at, head)[0])
        assert torch.equal(one.allowed, found.mask(part, layer))
        assert one.has_bias == (found.bias(part, layer, head) is not None)
        close(one.dots, one.q @ one.k.mT)
        scaled = one.dots * one.scale
        bent = scaled if one.cap is None else one.cap * (scaled / one.cap).tanh()
        close(one.scaled, bent)
        close(one.logits, one.scaled + one.added)
        assert torch.equal(one.added.isneginf(), ~one.allowed)
        rows = row_scale(found, part, layer, head)
        close(one.weights, one.logits.softmax(-1) * (1 if rows is None else rows))
        close(one.out, one.weights @ one.v)
        assert one.difference < 1e-6


def test_a_window_is_cut_out_of_the_whole_and_its_softmax_runs_over_all(found: ForwardPass) -> None:
    part = found.parts[0].name
    last = len(found.rows(part))
    one = whole(found, part)
    some = head_stages_of(found, part, 0, 0, range(last - 2, last), range(1, 3))
    for name in ("dots", "scaled", "logits", "weights"):
        close(getattr(some, name), getattr(one, name)[last - 2 :, 1:3])
    close(some.out, one.out[last - 2 :])
    assert some.difference < 1e-6


def test_a_row_that_sees_nothing_is_all_zero(found: ForwardPass) -> None:
    part = found.parts[-1].name
    last = len(found.rows(part)) - 1
    mask = found.mask(part, 0)[None, None].clone()
    mask[:, :, last] = False
    found.trace.values[f"{site(part, 0)}.mask"] = mask
    one = whole(found, part)
    assert not one.weights[last].any()
    assert not one.out[last].any()
    assert one.logits[last].isneginf().all()
    assert one.difference < 1e-6
    two = query_key_pair(found, part, 0, 0, last, 0)
    assert (two.weight, two.visible_keys, two.total, two.allowed) == (0.0, 0, 0.0, False)


def test_every_number_of_a_pair_is_that_of_the_pass(found: ForwardPass) -> None:
    for part, layer, head in every_head(found):
        for query, key in corners(found, part):
            one, at = query_key_pair(found, part, layer, head, query, key), site(part, layer)
            weights = found.trace.weights(at, head)[0, query]
            assert one.score == float(found.trace.scores(at, head)[0, query, key])
            assert one.weight == float(weights[key])
            scaled = one.dot * one.scale
            bent = scaled if one.cap is None else one.cap * math.tanh(scaled / one.cap)
            assert bent == pytest.approx(one.score, abs=1e-6)
            assert one.biased == pytest.approx(one.score + (one.bias or 0.0), abs=1e-6)
            share = math.exp(one.biased - one.largest) / one.total if one.allowed else 0.0
            assert share * (one.row_scale or 1) == pytest.approx(one.weight, abs=1e-6)
            assert one.difference < 1e-6
            assert one.allowed == bool(found.mask(part, layer)[query, key])
            assert one.visible_keys == int(found.mask(part, layer)[query].sum())
            assert weights[strongest(found, part, layer, head, query)] == weights.max()
            sizes = one.products.abs()[one.by_size()].tolist()
            assert sizes == sorted(sizes, reverse=True)


def test_a_distance_is_shown_where_positions_act_on_the_score(found: ForwardPass) -> None:
    acting = found.config.positions in ("rotary", "alibi", "relative")
    for part, layer, head in every_head(found):
        for query, key in corners(found, part):
            curve = by_distance(found, part, layer, head, query, key)
            assert (curve is not None) == (acting and part != "decoder.cross_attn")
            if curve is not None:
                one = query_key_pair(found, part, layer, head, query, key)
                assert curve.actual == query - key
                own = one.score if curve.what == "score" else one.bias
                assert dict(curve.points)[curve.actual] == pytest.approx(own, abs=1e-6)


def test_a_key_is_turned_as_the_model_turns_it(tmp_path: Path) -> None:
    for name in ("rotary", "partly", "stretched", "grouped"):
        found = read(tmp_path, name)
        part = found.parts[0].name
        query, key = 4, 2
        curve = by_distance(found, part, 0, 1, query, key)
        assert curve is not None
        positions = getattr(found.trace.model, part.split(".")[0]).positions
        assert isinstance(positions, RotaryPositions)
        norms = f"{site(part, 0)}.q_norm", f"{site(part, 0)}.k_norm"
        seen = trace(found.trace.model, *inputs_of(found), sites=norms)
        q, k = (seen[name] for name in norms)
        head = found.config.kv_head(1)
        turned = positions.rotation(torch.tensor([query]))(q[:, 1:2, query : query + 1])
        for distance, value in curve.points:
            rotate = positions.rotation(torch.tensor([query - distance]))
            moved = rotate(k[:, head : head + 1, key : key + 1])
            expected = float((turned * moved).sum()) * found.config.scale
            assert value == pytest.approx(expected, abs=1e-5), (name, distance)


def test_alibi_is_a_straight_line(tmp_path: Path) -> None:
    found, slope = read(tmp_path, "alibi"), float(AlibiPositions(2).slopes()[1])
    curve = by_distance(found, SELF, 0, 1, 4, 1)
    assert curve is not None
    for distance, value in curve.points:
        assert value == pytest.approx(-slope * abs(distance))


def test_heads_that_share_a_key_are_named_and_no_number_stays_none(tmp_path: Path) -> None:
    found = read(tmp_path, "grouped")
    first, second, third = (query_key_pair(found, SELF, 0, head, 3, 1) for head in range(3))
    assert (first.sharing, third.sharing) == (range(2), range(2, 4))
    assert torch.equal(first.k, second.k)
    assert not torch.equal(first.k, third.k)
    found.trace.values[f"{site(SELF, 0)}.q"].fill_(torch.nan)
    assert math.isnan(query_key_pair(found, SELF, 0, 0, 3, 1).weight)
    assert strongest(found, SELF, 0, 0, 3) == 0


def test_what_the_keys_give_adds_up_to_what_the_head_gives(found: ForwardPass) -> None:
    for part, layer, head in every_head(found):
        last, keys = len(found.rows(part)) - 1, range(len(found.columns(part)))
        ways = [key_contribution(found, part, layer, head, last, key) for key in keys]
        close(torch.stack([way.weighted_value for way in ways]).sum(0), ways[0].head_out)
        close(torch.stack([way.key_write for way in ways]).sum(0), ways[0].head_write)
        assert ways[0].difference < 1e-6


def test_the_way_and_its_ledger_end_in_the_stream_of_the_pass(found: ForwardPass) -> None:
    seen = trace(found.trace.model, *inputs_of(found))
    for part in found.parts:
        stack, last = part.name.split(".")[0], len(found.rows(part.name)) - 1
        way = key_contribution(found, part.name, 0, part.heads - 1, last, 0)
        close(way.head_write + way.others + way.bias, way.out)
        names = ("resid_pre", "resid_mid", "resid_cross")["cross_attn" in part.name :]
        before, after = (seen[f"{stack}.0.{name}"][0, last] for name in names[:2])
        close(way.before, before)
        close(way.after, after)

        rows = stream_terms(way)
        position = found.config.norm_position
        assert ("attention output, as it is added" in rows) == (position == "sandwich")
        assert ("residual stream after: sum, normed" in rows) == (position == "post")
        close(list(rows.values())[-1], after)
        *_, written, first, together = [v for k, v in rows.items() if "sum, normed" not in k]
        close(first, before)
        close(first + written, together)


def test_a_block_made_again_at_a_few_positions_is_that_of_the_pass(found: ForwardPass) -> None:
    seen: Any = trace(found.trace.model, *inputs_of(found))
    for part in found.parts:
        stack, places = part.name.split(".")[0], torch.tensor([0, len(found.rows(part.name)) - 1])
        for layer in range(part.layers):
            at = site(part.name, layer)
            block = block_writes(found, stack, layer, places)
            close(block.after, found.trace[f"{stack}.{layer}.resid_post"][0][places])
            attended = block.attentions[part.name]
            close(attended.heads, seen[f"{at}.head_out"][0][:, places])
            close(attended.out, seen[f"{at}.out"][0][places])
            bias = attended.attention.o_proj.bias
            together = sum(attended.through(h, attended.heads[h]) for h in range(part.heads))
            close(together + (0 if bias is None else bias), attended.out)
            if block.mlp is not None:
                close(block.mlp.out, seen[f"{stack}.{layer}.mlp.out"][0][places])
