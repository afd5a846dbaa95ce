"""Edges cut many at a time are edges cut one by one, the strongest first."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from explorer.analysis import ablation
from explorer.analysis.ablation import multiplications, parted
from explorer.analysis.changes import kl
from explorer.analysis.faithfulness import TooManyEdges, faithfulness, work
from explorer.parts import parts, site
from models import TransformerConfig, trace
from models.interventions import Edit, Scale, SetCell
from models.trace import CHEAP_SITES, Trace
from tests.grids import grid
from tests.models.building import config_of, inputs_of, shaken

CONFIGS = {
    "decoder": config_of("decoder"),
    "encoder": config_of("encoder", norm_position="post"),
    "grouped": config_of("encoder-decoder", n_kv_heads=1),
    "parallel": config_of("decoder", parallel=True),
    "classifier": config_of("encoder", head="classifier"),
}
PLACE = 4


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_the_strongest_edges_are_cut_first(
    config: TransformerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablation, "NUMBERS_HELD", 3000)
    model, given = shaken(config), inputs_of(config, batch=1)
    passed = trace(model, *given, sites=CHEAP_SITES)

    def read(output: torch.Tensor) -> torch.Tensor:
        return output[0, PLACE] if output.dim() == 3 else output[0]

    before = read(passed.output)
    for part in parts(config):
        at = site(part.name, 0)
        found = faithfulness(model, passed, given, part.name, 0, 1, PLACE, before, draws=2)
        weights = passed.weights(at, 1)[0]
        order = weights.flatten().argsort(descending=True).tolist()
        assert found.edges == int((weights > 0).sum())
        assert found.counts[-1] == found.edges
        for which, count in enumerate(found.counts):
            cells = [divmod(each, weights.shape[1]) for each in order[:count]]
            cuts = [SetCell(f"{at}.weights", q, k, head=1) for q, k in cells]
            alone = read(trace(model, *given, edits=cuts).output)
            torch.testing.assert_close(found.strongest[which], kl(before, alone))
        off = read(trace(model, *given, edits=[Scale(f"{at}.head_out", head=1)]).output)
        torch.testing.assert_close(found.random[-1], kl(before, off).expand(2))
        layer = faithfulness(model, passed, given, part.name, 0, None, PLACE, before, draws=1)
        off = read(trace(model, *given, edits=[Scale(f"{at}.head_out")]).output)
        torch.testing.assert_close(layer.strongest[-1], kl(before, off))


def test_edges_are_cut_in_the_pass_with_its_edits() -> None:
    config = config_of("decoder")
    model, given = shaken(config), inputs_of(config, batch=1)
    at = "decoder.1.self_attn"
    edits: list[Edit] = [
        Scale("decoder.0.self_attn.head_out", head=2),
        SetCell(f"{at}.mask", 4, 1, False),
    ]
    passed = trace(model, *given, sites=CHEAP_SITES, edits=edits)
    before = passed.output[0, PLACE]
    found = faithfulness(
        model, passed, given, "decoder.self_attn", 1, 1, PLACE, before, draws=1, edits=edits
    )
    weights = passed.weights(at, 1)[0]
    assert found.edges == int((weights > 0).sum())
    query, key = divmod(int(weights.argmax()), weights.shape[1])
    cut = SetCell(f"{at}.weights", query, key, head=1)
    alone = trace(model, *given, edits=[*edits, cut]).output[0, PLACE]
    torch.testing.assert_close(found.strongest[0], kl(before, alone))


def test_the_draws_follow_from_the_seed() -> None:
    config = config_of("decoder")
    model, given = shaken(config), inputs_of(config, batch=1)
    passed = trace(model, *given, sites=CHEAP_SITES)

    def drawn(seed: int) -> torch.Tensor:
        return faithfulness(
            model, passed, given, "decoder.self_attn", 0, 0, 5, passed.output[0, 5], seed
        ).random

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


def test_a_head_that_looks_at_nothing_has_no_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_of("decoder")
    model, (ids,) = shaken(config), inputs_of(config, batch=1, length=1)
    passed = trace(model, ids, sites=CHEAP_SITES)
    one = faithfulness(model, passed, (ids,), "decoder.self_attn", 0, 0, 0, passed.output[0, 0])
    assert one.counts == (1,)
    passed.values["decoder.0.self_attn.mask"] = torch.zeros(1, 1, 1, 1, dtype=torch.bool)
    none = faithfulness(model, passed, (ids,), "decoder.self_attn", 0, 0, 0, passed.output[0, 0])
    assert none.counts == ()
    monkeypatch.setattr("explorer.analysis.faithfulness.MOST_EDGES", 0)
    with pytest.raises(TooManyEdges, match="shorten it"):
        faithfulness(model, passed, (ids,), "decoder.self_attn", 0, 0, 0, passed.output[0, 0])


@grid("limit, head", ["MOST_EDGES", "MOST_WEIGHTS", "MOST"], [0, None])
def test_what_is_too_much_is_refused_before_weights_are_made(
    limit: str, head: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of("decoder")
    model, (ids,) = shaken(config), inputs_of(config, batch=1)
    passed = trace(model, ids, sites=CHEAP_SITES)
    monkeypatch.setattr(f"explorer.analysis.faithfulness.{limit}", 0)
    monkeypatch.setattr(Trace, "weights", lambda *asked: pytest.fail("weights were made"))
    with pytest.raises(TooManyEdges, match="shorten"):
        faithfulness(model, passed, (ids,), "decoder.self_attn", 0, head, 5, passed.output[0, 5])


def test_no_more_passes_are_made_than_work_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_of("decoder")
    model, (ids,) = shaken(config), inputs_of(config, batch=1)
    passed = trace(model, ids, sites=CHEAP_SITES)
    asked = model, passed, (ids,), "decoder.self_attn", 0, None
    made: list[int] = []

    def counted(*given: Any) -> torch.Tensor:
        made.append(given[6])
        return parted(*given)

    monkeypatch.setattr("explorer.analysis.faithfulness.parted", counted)
    told: list[float] = []
    faithfulness(*asked, 5, passed.output[0, 5], report=told.append)
    once = multiplications(model, (ids,), "decoder.self_attn", 0)
    assert once < made[0] * once <= work(*asked)
    assert told[-1] == 1
