"""A head stage by stage: every matrix is the pass's, and each follows from the one before."""

from __future__ import annotations

from functools import partial

import torch

from explorer import library, reading
from explorer.analysis.onward import onward
from explorer.analysis.pairs import pair
from explorer.analysis.stages import Stages, stages
from explorer.parts import site
from explorer.reading import Reading
from tests.source import ROOT

SHIPPED = sorted(path.parent.name for path in ROOT.glob("models/checkpoints/*/run.json"))

close = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-6)


def whole(reading: Reading, part: str, layer: int, head: int) -> Stages:
    rows, columns = range(len(reading.rows(part))), range(len(reading.columns(part)))
    return stages(reading, part, layer, head, rows, columns)


def every_head(reading: Reading) -> list[tuple[str, int, int]]:
    return [
        (part.name, layer, head)
        for part in reading.parts
        for layer in range(part.layers)
        for head in range(part.heads)
    ]


def test_every_stage_is_the_one_of_the_pass_and_made_of_the_one_before(found: Reading) -> None:
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
        close(one.weights, one.logits.softmax(-1))
        close(one.out, one.weights @ one.v)
        assert one.difference < 1e-6


def test_a_window_is_cut_out_of_the_whole_and_its_softmax_runs_over_all(found: Reading) -> None:
    part = found.parts[0].name
    last = len(found.rows(part))
    one = whole(found, part, 0, 0)
    some = stages(found, part, 0, 0, range(last - 2, last), range(1, 3))
    for name in ("dots", "scaled", "logits", "weights"):
        cut = getattr(one, name)[last - 2 :, 1:3]
        torch.testing.assert_close(getattr(some, name), cut, equal_nan=True)
    torch.testing.assert_close(some.out, one.out[last - 2 :])
    assert some.difference < 1e-6


def test_a_row_that_sees_nothing_is_all_zero(found: Reading) -> None:
    part = found.parts[-1].name
    mask = found.mask(part, 0)[None, None].clone()
    mask[:, :, -1] = False
    found.trace.values[f"{site(part, 0)}.mask"] = mask
    one = whole(found, part, 0, 0)
    assert not one.weights[-1].any()
    assert not one.out[-1].any()
    assert one.logits[-1].isneginf().all()
    assert one.difference < 1e-6


def test_a_planted_mistake_is_seen_in_the_difference(found: Reading) -> None:
    part = found.parts[0].name
    found.trace.values[f"{site(part, 0)}.weights"] = found.trace.weights(site(part, 0)) * 1.01
    assert whole(found, part, 0, 0).difference > 1e-3


def test_in_single_precision_every_ledger_of_a_shipped_model_is_right_to_a_millionth() -> None:
    for model in SHIPPED:
        opened = library.open_model(model)
        found = reading.read(opened, opened.example)
        for part, layer, head in every_head(found):
            assert whole(found, part, layer, head).difference <= 1e-6, model
            for query in range(len(found.rows(part))):
                assert pair(found, part, layer, head, query, 0).difference <= 1e-6, model
            last = len(found.rows(part)) - 1
            assert onward(found, part, layer, head, last, 0).difference <= 1e-6, model
