"""Edges cut many at a time are edges cut one by one, the strongest first."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.analysis import ablation
from explorer.analysis import faithfulness as module
from explorer.analysis.ablation import RecordedPass, multiplications, run_branches
from explorer.analysis.faithfulness import (
    Faithfulness,
    TooManyEdgesError,
    cutting_cost,
    faithfulness,
)
from explorer.analysis.output_change import kl
from explorer.catalog.attention_parts import parts, site
from models import TransformerConfig, trace
from models.interventions import Edit, Scale, SetCell
from models.trace import CHEAP_SITES, Trace
from tests.models.building import config_of, inputs_of, shaken

CONFIGS = {
    "decoder": config_of("decoder"),
    "encoder": config_of("encoder", norm_position="post"),
    "grouped": config_of("encoder-decoder", n_kv_heads=1),
    "parallel": config_of("decoder", parallel=True),
    "classifier": config_of("encoder", head="classifier"),
}
PLACE = 4
SELF = "decoder.self_attn"


def read(output: Tensor, place: int = PLACE) -> Tensor:
    return output[0, place] if output.dim() == 3 else output[0]


class Passed:
    """A recorded pass of a shaken model, whose edges are cut."""

    def __init__(
        self,
        config: TransformerConfig = CONFIGS["decoder"],
        length: int = 6,
        edits: Sequence[Edit] = (),
    ) -> None:
        self.model, self.edits = shaken(config), edits
        self.given = inputs_of(config, batch=1, length=length)
        self.trace: Trace = trace(self.model, *self.given, sites=CHEAP_SITES, edits=edits)
        self.place = min(PLACE, length - 1)
        self.before = read(self.trace.output, self.place)
        self.base = RecordedPass(self.trace, self.given, self.place, edits)

    def cut(
        self, part: str = SELF, layer: int = 0, head: int | None = 0, **how: Any
    ) -> Faithfulness:
        return faithfulness(self.base, part, layer, head, **how)

    def alone(self, *cuts: Edit) -> Tensor:
        """The KL of a pass of its own with these edits too."""
        output = trace(self.model, *self.given, edits=[*self.edits, *cuts]).output
        return kl(self.before, read(output, self.place))


def test_the_strongest_edges_are_cut_first(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(ablation, "NUMBERS_HELD", 3000)
    for name, config in CONFIGS.items():
        passed = Passed(config)
        for part in parts(config):
            with subtests.test(name=name, part=part.name):
                at = site(part.name, 0)
                found = passed.cut(part.name, 0, 1, draws=2)
                weights = passed.trace.weights(at, 1)[0]
                order = weights.flatten().argsort(descending=True).tolist()
                assert found.edges == found.counts[-1] == int((weights > 0).sum())
                for count, strongest in zip(found.counts, found.strongest, strict=True):
                    cells = [divmod(each, weights.shape[1]) for each in order[:count]]
                    cuts = [SetCell(f"{at}.weights", q, k, head=1) for q, k in cells]
                    torch.testing.assert_close(strongest, passed.alone(*cuts))
                off = passed.alone(Scale(f"{at}.head_out", head=1))
                torch.testing.assert_close(found.random[-1], off.expand(2))
                layer = passed.cut(part.name, 0, None, draws=1)
                off = passed.alone(Scale(f"{at}.head_out"))
                torch.testing.assert_close(layer.strongest[-1], off)


def test_edges_are_cut_in_the_pass_with_its_edits() -> None:
    at = "decoder.1.self_attn"
    silent = Scale("decoder.0.self_attn.head_out", head=2)
    passed = Passed(edits=[silent, SetCell(f"{at}.mask", 4, 1, False)])
    found = passed.cut(SELF, 1, 1, draws=1)
    weights = passed.trace.weights(at, 1)[0]
    assert found.edges == int((weights > 0).sum())
    query, key = divmod(int(weights.argmax()), weights.shape[1])
    cut = SetCell(f"{at}.weights", query, key, head=1)
    torch.testing.assert_close(found.strongest[0], passed.alone(cut))


def test_the_draws_follow_from_the_seed() -> None:
    one, again, other = (Passed().cut(seed=seed).random for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_a_head_that_attends_to_nothing_has_no_edges() -> None:
    passed = Passed(length=1)
    assert passed.cut().counts == (1,)
    passed.trace.values["decoder.0.self_attn.mask"] = torch.zeros(1, 1, 1, 1, dtype=torch.bool)
    assert passed.cut().counts == ()


def test_what_is_too_much_is_refused_before_weights_are_made(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    passed = Passed()
    monkeypatch.setattr(Trace, "weights", lambda *asked: pytest.fail("weights were made"))
    for limit, head in product(("MOST_EDGES", "MOST_WEIGHTS", "MOST"), (0, None)):
        with subtests.test(limit=limit, head=head), monkeypatch.context() as patch:
            patch.setattr(module, limit, 0)
            with pytest.raises(TooManyEdgesError, match="shorten"):
                passed.cut(head=head)


def test_no_more_passes_are_made_than_work_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    passed, made, told = Passed(), list[int](), list[float]()

    def counted(*given: Any) -> Tensor:
        made.append(given[3])
        return run_branches(*given)

    monkeypatch.setattr(module, "run_branches", counted)
    passed.cut(head=None, report=told.append)
    once = multiplications(passed.base, SELF, 0)
    assert once < made[0] * once <= cutting_cost(passed.base, SELF, 0, None)
    assert told[-1] == 1
