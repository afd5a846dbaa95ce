"""Heads ablated many at a time are heads ablated one by one."""

from collections.abc import Callable, Sequence
from itertools import product

import pytest
import torch
from torch import Tensor

from explorer.analysis import ablation
from explorer.analysis.ablation import RecordedPass, ablate_every_head
from explorer.catalog.attention_parts import Part, parts, site
from models import Transformer, TransformerConfig, trace
from models.interventions import (
    AblateHeads,
    Edit,
    MaskKey,
    Mean,
    Replace,
    ReplaceAt,
    Scale,
    SetCell,
)
from models.trace import CHEAP_SITES, Trace
from tests.grids import grid
from tests.models.building import config_of, inputs_of, shaken
from tests.models.grid import ODDITIES

PLACE = 2
Patched = Callable[[int], Tensor] | None
MODELS = {
    **{name: config for name, config in ODDITIES.items() if config.head != "none"},
    "encoder": config_of("encoder"),
    "post": config_of("decoder", norm_position="post"),
    "sandwich": config_of("encoder", norm_position="sandwich", norm="rms"),
    "encoder-decoder, post": config_of("encoder-decoder", norm_position="post"),
    "relative": config_of("encoder-decoder", positions="relative"),
    "alibi": config_of("decoder", positions="alibi", n_heads=3),
    "rotary, parallel": config_of("decoder", positions="rotary", parallel=True),
}
ONE_PLACE = {
    **{
        positions: config_of("decoder", n_layers=3, positions=positions, windows=(0, 2, 2))
        for positions in ("sinusoidal", "learned", "rotary", "alibi", "relative")
    },
    "post": config_of("decoder", norm_position="post"),
    "parallel": config_of("decoder", positions="rotary", parallel=True, n_kv_heads=1),
    "cross": config_of("encoder-decoder", norm_position="sandwich", positions="relative"),
    "counted padding": config_of("decoder", n_layers=3, count_padding=True),
}
EDITED = {
    **{kind: config_of(kind) for kind in ("encoder", "decoder", "encoder-decoder")},
    "windows": config_of("decoder", n_layers=3, windows=(2, 0, 2)),
    "grouped, capped": config_of("decoder", n_kv_heads=1, attention_cap=5.0),
    "classifier": config_of("encoder", head="classifier"),
}


class Passed:
    """A recorded pass of a shaken model, and other passes to hold it against."""

    def __init__(self, config: TransformerConfig, padded: tuple[int, ...] = ()) -> None:
        self.model: Transformer = shaken(config, torch.float32)
        self.given = inputs_of(config, batch=1)
        for place in padded:
            self.given[-1][:, place] = config.pad_id or 0
        self.edited_by(())

    def edited_by(self, edits: Sequence[Edit]) -> None:
        self.edits = edits
        self.trace: Trace = trace(self.model, *self.given, sites=CHEAP_SITES, edits=edits)

    def every_head(self, part: Part, place: int = PLACE, patched: Patched = None) -> list[Tensor]:
        base = RecordedPass(self.trace, self.given, place, self.edits)
        return list(ablate_every_head(base, part.name, part.layers, patched))

    def alone(self, place: int, *more: Edit) -> Tensor:
        """What a pass of its own answers at this place, with these edits too."""
        edits = [*self.edits, *more]
        output = trace(self.model, *self.given, sites=("logits",), edits=edits).output
        return output[0, place] if output.dim() == 3 else output[0]

    def has_every_head_alone(self, place: int, heads: Sequence[int]) -> None:
        for part in parts(self.model.config):
            found = self.every_head(part, place)
            for layer, head in product(range(part.layers), heads):
                off = Scale(f"{site(part.name, layer)}.head_out", head=head)
                close(found[layer][head], self.alone(place, off))


def close(found: Tensor, alone: Tensor) -> None:
    torch.testing.assert_close(found, alone, atol=1e-5, rtol=1e-5)


def test_many_at_a_time_is_one_by_one(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """In batches of two, so that the last one is not full; what classifies has some padding."""
    for name, config in MODELS.items():
        with subtests.test(name=name), monkeypatch.context() as patch:
            held = 2 * 6 * max(config.d_ff, 4 * config.d_model)
            patch.setattr(ablation, "NUMBERS_HELD", held)
            padded = (-1, -2) if name == "classifier" else ()
            Passed(config, padded).has_every_head_alone(PLACE, range(config.n_heads))


@grid("padded, config", [(), (0, 1), (-1,)], ONE_PLACE.values())
def test_the_last_layer_passes_one_place(
    config: TransformerConfig, padded: tuple[int, ...]
) -> None:
    """All heads of all layers in one batch, read at the first, a middle and the last token."""
    passed = Passed(config, padded)
    for place in (0, 2, passed.given[-1].shape[1] - 1):
        if passed.given[-1][0, place]:
            passed.has_every_head_alone(place, range(config.n_heads))


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
        MaskKey(f"{at}.mask", 0),
        Replace(f"{stack}.{layer}.self_attn.mask", one_cell),
        SetCell(f"{stack}.*.self_attn.mask", 1, 0, True),
        Scale(f"{stack}.{layer}.mlp.out"),
        ReplaceAt(f"{stack}.{layer}.resid_post", 1, torch.ones(d_model)),
    ]


def test_the_edits_of_the_pass_are_made_again(subtests: pytest.Subtests) -> None:
    """Before the layer, in it and behind it; the mask of one layer is not that of the others."""
    for name, config in EDITED.items():
        passed = Passed(config)
        for edited in parts(config):
            tokens = passed.given[0 if edited.name.startswith("encoder") else -1]
            for layer in range(edited.layers):
                with subtests.test(name=name, part=edited.name, layer=layer):
                    passed.edited_by(edits_of(edited.name, layer, tokens, config.d_model))
                    passed.has_every_head_alone(PLACE, [2])


def test_every_head_patched_is_each_patched_alone(subtests: pytest.Subtests) -> None:
    for name, config in EDITED.items():
        passed = Passed(config)
        others = [each.flip(-1) for each in passed.given]
        passed.edited_by([Scale(f"{site(parts(config)[0].name, 0)}.head_out", head=1)])
        for part in parts(config):
            with subtests.test(name=name, part=part.name):
                at = [f"{site(part.name, layer)}.head_out" for layer in range(part.layers)]
                other = [trace(passed.model, *others, sites=[each])[each][0] for each in at]
                found = passed.every_head(part, patched=other.__getitem__)
                for layer, head in product(range(part.layers), range(part.heads)):
                    whole = enumerate(other[layer][head])
                    swaps = [ReplaceAt(at[layer], i, each, head) for i, each in whole]
                    close(found[layer][head], passed.alone(PLACE, *swaps))


def sizes_of(config: TransformerConfig, edits: Sequence[Edit] = ()) -> list[int]:
    """How many rows each batch of five passes holds."""
    passed = Passed(config)
    passed.edited_by(edits)
    part, told, sizes = parts(config)[0], list[float](), list[int]()

    def edit_of(rows: range) -> Edit:
        sizes.append(len(rows))
        return AblateHeads(f"{site(part.name, 0)}.head_out", tuple(0 for _ in rows))

    base = RecordedPass(passed.trace, passed.given, PLACE, edits)
    ablation.run_branches(base, part.name, 0, 5, edit_of, report=told.append)
    assert len(told) == len(sizes)
    assert told[-1] == 1
    return sizes


def test_what_a_row_holds_decides_the_size_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that edits hold, and capped scores, which are never fused: heads × queries × keys."""
    small = {"d_model": 4, "n_heads": 4, "d_ff": 4}
    cuts = [SetCell("decoder.0.self_attn.weights", 2, 1)]
    monkeypatch.setattr(ablation, "NUMBERS_HELD", 2 * (6 * 16 + 2 * 4 * 36 + 6 * 4))
    assert sizes_of(config_of("decoder", **small), cuts) == [2, 2, 1]
    assert sizes_of(config_of("decoder", **small)) == [5]
    monkeypatch.setattr(ablation, "NUMBERS_HELD", 2 * 2 * 4 * 36)
    for kind in ("decoder", "encoder-decoder"):
        assert sizes_of(config_of(kind, **small, attention_cap=5.0)) == [2, 2, 1]
