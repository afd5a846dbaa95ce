"""Branches of a recorded pass, many at a time, are whole passes with the same edit, one by one."""

from collections.abc import Sequence
from itertools import product
from typing import Any, Self

import pytest
import torch
from torch import Tensor

from explorer.analysis import batched_passes, causal_tracing, map_faithfulness
from explorer.analysis.ablation_and_patching import (
    ablate_every_head,
    patch_every_head,
    patch_layers,
    shared_tokens,
)
from explorer.analysis.batch_edits import AblateHeads
from explorer.analysis.batched_passes import RecordedPass, multiplications
from explorer.analysis.causal_tracing import RESIDUAL, TracedGrid, Tracing, mean_grid
from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.map_faithfulness import Faithfulness, TooManyEdgesError
from explorer.analysis.output_change import kl
from explorer.catalog.attention_parts import parts, site
from models import TransformerConfig, trace
from models.interventions import Edit, Mean, Replace, ReplaceAt, Scale, SetCell
from models.trace import CHEAP_SITES, Trace
from tests.analysis.contrasts import contrast_of, metric_of
from tests.analysis.kinds_of_model import CONFIGS, each_kind
from tests.closeness import assert_close_to as close
from tests.grids import grid
from tests.tiny import config_of, inputs_of, shaken

SELF = "decoder.self_attn"
PLACE, SHARED = 4, 3
"""The position that is read, and the tokens that two texts begin with."""
EACH_KIND = pytest.mark.parametrize("name", each_kind(CONFIGS))
FEW = ("decoder", "grouped", "first", "rotary", "around", "capped", "beside")


class Recorded:
    """A recorded pass of a shaken model in float64, and whole passes to hold it against."""

    def __init__(
        self,
        config: TransformerConfig = CONFIGS["decoder"],
        *edits: Edit,
        padded: tuple[int, ...] = (),
        length: int = 6,
    ) -> None:
        self.model = shaken(config)
        self.given = inputs_of(config, batch=1, length=length)
        self.given[-1][:, list(padded)] = config.pad_id or 0
        self.at(min(PLACE, self.given[-1].shape[1] - 1)).edited_by(*edits)

    def at(self, place: int) -> Self:
        self.place = place
        return self

    def edited_by(self, *edits: Edit) -> Self:
        self.edits = edits
        self.trace: Trace = trace(self.model, *self.given, sites=CHEAP_SITES, edits=edits)
        return self

    def base(self, shared: int = 0) -> RecordedPass:
        return RecordedPass(self.trace, self.given, self.place, self.edits, shared)

    def alone(self, *more: Edit) -> Tensor:
        """What a pass of its own answers, with these edits too."""
        edits = [*self.edits, *more]
        output = trace(self.model, *self.given, sites=("logits",), edits=edits).output
        return output[0, self.place] if output.dim() == 3 else output[0]

    def has_every_head_alone(self, heads: Sequence[int]) -> None:
        for part in parts(self.model.config):
            found = list(ablate_every_head(self.base(), part.name, part.layers))
            for layer, head in product(range(part.layers), heads):
                off = Scale(f"{site(part.name, layer)}.head_out", head=head)
                close(found[layer][head], self.alone(off))


@EACH_KIND
def test_heads_ablated_many_at_a_time_are_ablated_one_by_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one batch or in batches of two, read at the first, a middle and the last token."""
    config = CONFIGS[name]
    passed = Recorded(config, padded=(0, 1))
    for place in (0, 2, passed.given[-1].shape[1] - 1):
        with monkeypatch.context() as patch:
            if place == 2:
                held = 2 * 6 * max(config.d_ff, 4 * config.d_model)
                patch.setattr(batched_passes, "NUMBERS_HELD", held)
            if passed.given[-1][0, place]:
                passed.at(place).has_every_head_alone(range(config.n_heads) if place == 2 else [1])


def edits_of(part: str, layer: int, tokens: Tensor, d_model: int) -> list[Edit]:
    """One of every kind that a reader makes, in this layer and in all."""
    stack, attention = part.split(".")
    at, queries = site(part, layer), tokens.shape[1]
    one_cell = torch.eye(queries, dtype=torch.bool)[None, None]
    return [
        Scale(f"{at}.head_out", head=1),
        Mean(f"{at}.head_out", 0),
        SetCell(f"{at}.weights", 2, 0, None),
        SetCell(f"{stack}.*.{attention}.mask", 2, 1, False),
        SetCell(f"{at}.mask", None, 0, False),
        Replace(f"{stack}.{layer}.self_attn.mask", one_cell),
        SetCell(f"{stack}.*.self_attn.mask", 1, 0, True),
        Scale(f"{stack}.{layer}.mlp.out"),
        ReplaceAt(f"{stack}.{layer}.resid_post", 1, torch.ones(d_model)),
    ]


def test_the_edits_of_the_pass_are_made_again(subtests: pytest.Subtests) -> None:
    """Before the layer, in it and behind it; the mask of one layer is not that of the others."""
    for name in FEW:
        passed = Recorded(CONFIGS[name]).at(2)
        for edited in parts(CONFIGS[name]):
            tokens = passed.given[0 if edited.name.startswith("encoder") else -1]
            for layer in range(edited.layers):
                with subtests.test(name=name, part=edited.name, layer=layer):
                    edits = edits_of(edited.name, layer, tokens, passed.model.config.d_model)
                    passed.edited_by(*edits).has_every_head_alone([2])


def test_every_head_patched_is_each_patched_alone(subtests: pytest.Subtests) -> None:
    for name in FEW:
        passed = Recorded(CONFIGS[name]).at(2)
        others = [each.flip(-1) for each in passed.given]
        passed.edited_by(Scale(f"{site(parts(CONFIGS[name])[0].name, 0)}.head_out", head=1))
        for part in parts(CONFIGS[name]):
            with subtests.test(name=name, part=part.name):
                at = [f"{site(part.name, layer)}.head_out" for layer in range(part.layers)]
                other = [trace(passed.model, *others, sites=[each])[each][0] for each in at]
                made = ablate_every_head(passed.base(), part.name, part.layers, other.__getitem__)
                for layer, heads in enumerate(made):
                    for head, logits in enumerate(heads):
                        whole = enumerate(other[layer][head])
                        swaps = [ReplaceAt(at[layer], i, each, head) for i, each in whole]
                        close(logits, passed.alone(*swaps))


def sizes_of(config: TransformerConfig, *edits: Edit) -> list[int]:
    """How many rows each batch of five passes holds."""
    passed, part, sizes = Recorded(config, *edits), parts(config)[0], list[int]()

    def edit_of(rows: range) -> Edit:
        sizes.append(len(rows))
        return AblateHeads(f"{site(part.name, 0)}.head_out", tuple(0 for _ in rows))

    batched_passes.run_branches(passed.base(), part.name, 0, 5, edit_of)
    return sizes


def test_what_a_row_holds_decides_the_size_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that edits hold, and capped scores, which are never fused: heads × queries × keys."""
    small = config_of("decoder", d_model=4, n_heads=4, d_ff=4)
    monkeypatch.setattr(batched_passes, "NUMBERS_HELD", 2 * (6 * 16 + 2 * 4 * 36 + 6 * 4))
    assert sizes_of(small, SetCell("decoder.0.self_attn.weights", 2, 1)) == [2, 2, 1]
    assert sizes_of(small) == [5]
    monkeypatch.setattr(batched_passes, "NUMBERS_HELD", 2 * 2 * 4 * 36)
    assert sizes_of(small.replace(attention_cap=5.0)) == [2, 2, 1]


class Patched(Recorded):
    """The pass of one text, and what is patched into it from another."""

    def __init__(
        self,
        config: TransformerConfig = CONFIGS["decoder"],
        *edits: Edit,
        padded: tuple[int, ...] = (),
        parts_at: int = SHARED,
    ) -> None:
        super().__init__(config, *edits, padded=padded)
        corrupted = [each.clone() for each in self.given]
        corrupted[-1][:, parts_at:] = self.given[-1][:, parts_at:] % 10 + 3
        corrupted[-1][:, list(padded)] = config.pad_id or 0
        self.shared = shared_tokens(self.given[-1], corrupted[-1])
        sites = ("*.head_out", "*.mlp.out", "*.0.resid_pre")
        self.other: Trace = trace(self.model, *corrupted, sites=sites)

    def patched_alone(self, at: str, head: int | None = None) -> Tensor:
        """What a whole pass answers with this value of the other text."""
        value = self.other[at]
        if head is not None:
            value = trace(self.model, *self.given, sites=[at], edits=self.edits)[at].clone()
            value[:, head] = self.other[at][:, head]
        return self.alone(Replace(at, value))

    def has_every_part_alone(self) -> RecordedPass:
        base = self.base(self.shared)
        for part in parts(self.model.config):
            stack = part.name.split(".")[0]
            if stack == "encoder" and len(base.inputs) > 1:
                continue  # its text is the same in both
            found = patch_every_head(base, self.other, part.name, part.layers)
            for layer, heads in enumerate(found):
                for head, logits in enumerate(heads):
                    close(logits, self.patched_alone(f"{site(part.name, layer)}.head_out", head))
            own = f"{stack}.self_attn"
            layers = range(part.layers if self.model.config.d_ff else 0)
            feed_forwards = patch_layers(base, self.other, own, layers, "mlp.out")
            for layer, (logits,) in enumerate(feed_forwards):
                close(logits, self.patched_alone(f"{stack}.{layer}.mlp.out"))
            ((logits,),) = patch_layers(base, self.other, own, (0,), "resid_pre")
            close(logits, self.patched_alone(f"{stack}.0.resid_pre"))
        return base


@EACH_KIND
@pytest.mark.parametrize("padded", [(), (-1,)], ids=str)
def test_a_late_branch_is_a_whole_pass(name: str, padded: tuple[int, ...]) -> None:
    config = CONFIGS[name]
    base = Patched(config, padded=padded).has_every_part_alone()
    starts = {part.name: base.start(part.name) for part in parts(config)}
    is_shared = config.kind != "encoder" and config.head == "language-model"
    expected = SHARED if is_shared else 0
    assert {start for name, start in starts.items() if name.startswith("decoder")} <= {expected}
    assert starts.get("encoder.self_attn", 0) == 0


def test_in_batches_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of a layer, one layer, and all layers in one batch."""
    config = CONFIGS["alibi, windows"]
    for rows in (2, 3, 9):
        of_row = (6 - SHARED) * max(config.d_ff, 4 * config.d_model)
        monkeypatch.setattr(batched_passes, "NUMBERS_HELD", rows * of_row)
        Patched(config).has_every_part_alone()


def test_what_is_computed_of_the_text() -> None:
    """All of it where an edit names all positions, always the position that is read."""
    everywhere = Patched(CONFIGS["decoder"], Scale("decoder.0.mlp.out"))
    for starts_at, patched in {0: everywhere, PLACE: Patched(parts_at=PLACE)}.items():
        assert patched.has_every_part_alone().start(SELF) == starts_at
    assert Patched(parts_at=PLACE + 1).has_every_part_alone().start(SELF) == PLACE
    costs = [multiplications(Recorded().base(shared), SELF, 0) for shared in (0, 3)]
    assert costs[1] < costs[0], "fewer tokens cost less"
    one = torch.tensor([[4, 5, 6]])
    assert [shared_tokens(one, torch.tensor([other])) for other in ([3, 5, 6], [4, 9, 6])] == [0, 1]
    assert shared_tokens(one, one) == 3


def cut(
    passed: Recorded, part: str = SELF, layer: int = 0, head: int | None = 0, **how: Any
) -> Faithfulness:
    return map_faithfulness.faithfulness(passed.base(), part, layer, head, **how)


def cut_alone(passed: Recorded, *cuts: Edit) -> Tensor:
    """The KL of a pass of its own with these edits too."""
    return kl(passed.alone(), passed.alone(*cuts))


def test_strongest_edges_first(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    monkeypatch.setattr(batched_passes, "NUMBERS_HELD", 3000)
    for name in ("decoder", "after", "grouped", "beside", "first"):
        passed = Recorded(CONFIGS[name])
        for part in parts(CONFIGS[name]):
            with subtests.test(name=name, part=part.name):
                at = site(part.name, 0)
                found = cut(passed, part.name, 0, 1, draws=2)
                weights = passed.trace.weights(at, 1)[0]
                order = weights.flatten().argsort(descending=True).tolist()
                assert found.edges == found.counts[-1] == int((weights > 0).sum())
                for count, strongest in zip(found.counts, found.strongest, strict=True):
                    cells = [divmod(each, weights.shape[1]) for each in order[:count]]
                    cuts = [SetCell(f"{at}.weights", q, k, head=1) for q, k in cells]
                    close(strongest, cut_alone(passed, *cuts))
                off = cut_alone(passed, Scale(f"{at}.head_out", head=1))
                close(found.random[-1], off.expand(2))
                layer = cut(passed, part.name, 0, None, draws=1)
                close(layer.strongest[-1], cut_alone(passed, Scale(f"{at}.head_out")))


def test_edges_are_cut_in_the_pass_with_its_edits() -> None:
    at = "decoder.1.self_attn"
    silent = Scale("decoder.0.self_attn.head_out", head=2)
    passed = Recorded(CONFIGS["decoder"], silent, SetCell(f"{at}.mask", 4, 1, False))
    found = cut(passed, SELF, 1, 1, draws=1)
    assert found.edges == int((passed.trace.weights(at, 1)[0] > 0).sum())
    close(found.strongest[-1], cut_alone(passed, Scale(f"{at}.head_out", head=1)))


def test_the_draws_follow_from_the_seed_and_a_head_without_edges_has_none() -> None:
    one, again, other = (cut(Recorded(), seed=seed).random for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    passed = Recorded(length=1)
    assert cut(passed).counts == (1,)
    passed.trace.values["decoder.0.self_attn.mask"] = torch.zeros(1, 1, 1, 1, dtype=torch.bool)
    assert cut(passed).counts == ()


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    passed = Recorded()
    monkeypatch.setattr(Trace, "weights", lambda *asked: pytest.fail("weights were made"))
    for limit, head in product(("MOST_EDGES", "MOST_WEIGHTS", "MOST"), (0, None)):
        with subtests.test(limit=limit, head=head), monkeypatch.context() as patch:
            patch.setattr(map_faithfulness, limit, 0)
            with pytest.raises(TooManyEdgesError, match="shorten"):
                cut(passed, head=head)


SITES = (RESIDUAL, causal_tracing.ATTENTION, causal_tracing.FEED_FORWARD)
NAMES = ("decoder", "rotary", "alibi, windows", "beside", "after", "masked", "first")
TRACED = {name: CONFIGS[name] for name in (*NAMES, "the last token decides")}


def grid_of(contrast: Contrast, site: str, denoising: bool) -> TracedGrid:
    tracing = Tracing(contrast, site, denoising)
    return tracing.grid([*tracing.columns()])


@grid("site, denoising, more, config", SITES, (True, False), (0, 1), TRACED.values())
def test_each_cell_is_its_own_pass(
    config: TransformerConfig, site: str, denoising: bool, more: int
) -> None:
    """Patched at the partner of its position, or as it was where it has none."""
    contrast = contrast_of(config, more=more)
    found = grid_of(contrast, site, denoising)
    patched = contrast.swapped if denoising else contrast
    tokens = patched.clean.shape[1]
    partners = dict(patched.partners) or {at: at for at in range(tokens)}
    values = trace(contrast.model, patched.corrupted, sites=[f"*.{site}"])
    assert found.values.shape == (config.n_layers, tokens)
    for layer, position in product(range(config.n_layers), range(tokens)):
        at = f"{config.stacks[-1]}.{layer}.{site}"
        there = [partners[position]] if position in partners else []
        edits = [ReplaceAt(at, position, values[at][0, place]) for place in there]
        alone = metric_of(patched, patched.clean, *edits)
        assert float(found.values[layer, position]) == pytest.approx(alone, abs=1e-6)
    ends = [metric_of(side, side.clean) for side in (contrast, contrast.swapped)]
    assert [found.clean, found.corrupted] == pytest.approx(ends, abs=1e-6)


def test_the_embedding_of_the_only_other_token_is_the_whole_difference() -> None:
    for denoising in (True, False):
        found = grid_of(contrast_of(CONFIGS["decoder"]), RESIDUAL, denoising)
        assert found.share[0].tolist() == pytest.approx([0, 0, 1, 0, 0], abs=1e-6)
        assert found.normalised[0, 2] == pytest.approx(1 if denoising else 0, abs=1e-6)
        assert found.change[0, 2] == pytest.approx(found.clean - found.corrupted, abs=1e-6)


def test_a_shorter_rest_costs_less_and_a_mean_is_over_pairs() -> None:
    configs = (config_of(), config_of("encoder", head="masked-language-model"))
    decoder, encoder = (Tracing(contrast_of(each), RESIDUAL, True) for each in configs)
    assert decoder.cost < encoder.cost
    one, other = (TracedGrid(torch.full((2, 3), n), n, -n, True) for n in (1.0, 3.0))
    mean = mean_grid([one, other])
    assert (mean.clean, mean.corrupted, float(mean.values[0, 0])) == (2.0, -2.0, 2.0)
    assert mean.normalised.tolist() == [[1.0] * 3] * 2
