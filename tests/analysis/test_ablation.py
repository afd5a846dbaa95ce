"""Heads switched off many at a time are heads switched off one by one."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from explorer.analysis import ablation
from explorer.analysis.ablation import every_head, multiplications, without_heads
from explorer.parts import parts, site
from models import TransformerConfig, trace
from models.interventions import (
    Edit,
    ForbidKey,
    Mean,
    Replace,
    ReplaceAt,
    Scale,
    SetCell,
    Without,
)
from models.trace import CHEAP_SITES
from tests.grids import grid
from tests.models.building import config_of, inputs_of, shaken
from tests.models.grid import ODDITIES

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


@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS.keys())
def test_many_at_a_time_is_one_by_one(
    config: TransformerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In batches of two, so that the last one is not full."""
    model, given = shaken(config, torch.float32), inputs_of(config, batch=1)
    passed = trace(model, *given, sites=CHEAP_SITES)
    monkeypatch.setattr(ablation, "NUMBERS_HELD", 2 * 6 * max(config.d_ff, 4 * config.d_model))
    place = 2
    for part in parts(config):
        found = list(every_head(model, passed, given, part.name, part.layers, place))
        for layer in range(part.layers):
            for head in range(part.heads):
                off = Scale(f"{site(part.name, layer)}.head_out", head=head)
                alone = trace(model, *given, sites=("logits",), edits=[off]).output
                alone = alone[0, place] if alone.dim() == 3 else alone[0]
                torch.testing.assert_close(found[layer][head], alone, atol=1e-5, rtol=1e-5)


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


@grid("padded, config", [(), (0, 1), (-1,)], ONE_PLACE.values())
def test_the_last_layer_passes_one_place(
    config: TransformerConfig, padded: tuple[int, ...]
) -> None:
    """All heads of all layers in one batch, read at the first, a middle and the last token."""
    model, given = shaken(config, torch.float32), inputs_of(config, batch=1)
    for place in padded:
        given[-1][:, place] = config.pad_id or 0
    passed = trace(model, *given, sites=CHEAP_SITES)
    places = [at for at in (0, 2, given[-1].shape[1] - 1) if given[-1][0, at]]
    for part, place in product(parts(config), places):
        found = list(every_head(model, passed, given, part.name, part.layers, place))
        for layer, head in product(range(part.layers), range(part.heads)):
            off = Scale(f"{site(part.name, layer)}.head_out", head=head)
            alone = trace(model, *given, sites=("logits",), edits=[off]).output[0, place]
            torch.testing.assert_close(found[layer][head], alone, atol=1e-5, rtol=1e-5)


EDITED = {
    **{kind: config_of(kind) for kind in ("encoder", "decoder", "encoder-decoder")},
    "windows": config_of("decoder", n_layers=3, windows=(2, 0, 2)),
    "grouped, capped": config_of("decoder", n_kv_heads=1, attention_cap=5.0),
    "classifier": config_of("encoder", head="classifier"),
}


def edits_of(part: str, layer: int, tokens: torch.Tensor, d_model: int) -> list[Edit]:
    """One of every kind that a reader makes, in this layer and in all."""
    stack, attention = part.split(".")
    at, queries = site(part, layer), tokens.shape[1]
    one_cell = torch.eye(queries, dtype=torch.bool)[None, None]
    everywhere = f"{stack}.*.self_attn.mask"
    return [
        Scale(f"{at}.head_out", head=1),
        Mean(f"{at}.head_out", 0),
        SetCell(f"{at}.weights", 2, 0, None),
        SetCell(f"{stack}.*.{attention}.mask", 2, 1, False),
        ForbidKey(f"{at}.mask", 0),
        Replace(f"{stack}.{layer}.self_attn.mask", one_cell),
        SetCell(everywhere, 1, 0, True),
        Scale(f"{stack}.{layer}.mlp.out"),
        ReplaceAt(f"{stack}.{layer}.resid_post", 1, torch.ones(d_model)),
    ]


def test_the_edits_of_the_pass_are_made_again(subtests: pytest.Subtests) -> None:
    """Before the layer, in it and behind it; the mask of one layer is not that of the others."""
    for config in EDITED.values():
        with subtests.test(config=config):
            model, given = shaken(config, torch.float32), inputs_of(config, batch=1)
            place = 2
            for edited in parts(config):
                tokens = given[0] if edited.name.startswith("encoder") else given[-1]
                for layer in range(edited.layers):
                    edits = edits_of(edited.name, layer, tokens, config.d_model)
                    passed = trace(model, *given, sites=CHEAP_SITES, edits=edits)
                    for part in parts(config):
                        found = list(
                            every_head(model, passed, given, part.name, part.layers, place, edits)
                        )
                        for ablated in range(part.layers):
                            off = Scale(f"{site(part.name, ablated)}.head_out", head=2)
                            alone = trace(
                                model, *given, sites=("logits",), edits=[*edits, off]
                            ).output
                            alone = alone[0, place] if alone.dim() == 3 else alone[0]
                            torch.testing.assert_close(
                                found[ablated][2], alone, atol=1e-5, rtol=1e-5
                            )


def test_every_head_patched_is_each_patched_alone(subtests: pytest.Subtests) -> None:
    for config in EDITED.values():
        with subtests.test(config=config):
            model, given = shaken(config, torch.float32), inputs_of(config, batch=1)
            others = [each.flip(-1) for each in given]
            edits = [Scale(f"{site(parts(config)[0].name, 0)}.head_out", head=1)]
            passed = trace(model, *given, sites=CHEAP_SITES, edits=edits)
            place = 2
            for part in parts(config):
                at = [f"{site(part.name, layer)}.head_out" for layer in range(part.layers)]
                other = [trace(model, *others, sites=[each])[each][0] for each in at]
                found = list(
                    every_head(
                        *(model, passed, given, part.name, part.layers, place),
                        edits=edits,
                        instead=other.__getitem__,
                    )
                )
                for layer, head in product(range(part.layers), range(part.heads)):
                    whole = other[layer][head]
                    swaps = [ReplaceAt(at[layer], i, each, head) for i, each in enumerate(whole)]
                    alone = trace(model, *given, sites=("logits",), edits=[*edits, *swaps]).output
                    alone = alone[0, place] if alone.dim() == 3 else alone[0]
                    torch.testing.assert_close(found[layer][head], alone, atol=1e-5, rtol=1e-5)


def test_weights_that_edits_hold_are_counted_in_the_size_of_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = config_of("decoder", d_model=4, n_heads=4, d_ff=4)
    cuts = [SetCell("decoder.0.self_attn.weights", 2, 1)]
    monkeypatch.setattr(ablation, "NUMBERS_HELD", 2 * (6 * 16 + 2 * 4 * 36 + 6 * 4))
    assert sizes_of(config, cuts) == [2, 2, 1]
    assert sizes_of(config, []) == [5]


def test_a_padded_text() -> None:
    config = config_of("encoder", head="classifier")
    model, (ids,) = shaken(config, torch.float32), inputs_of(config, batch=1)
    ids[:, -2:] = 0
    passed = trace(model, ids, sites=CHEAP_SITES)
    found = without_heads(model, passed, (ids,), "encoder.self_attn", 0, 0)
    off = Scale("encoder.0.self_attn.head_out", head=1)
    torch.testing.assert_close(found[1], trace(model, ids, edits=[off]).output[0])


def test_a_planted_mistake_would_be_seen() -> None:
    """Another head's row is not equal: the comparison above is not blind."""
    config = config_of("decoder")
    model, given = shaken(config), inputs_of(config, batch=1)
    passed = trace(model, *given, sites=CHEAP_SITES)
    found = without_heads(model, passed, given, "decoder.self_attn", 0, 5)
    off = Scale("decoder.0.self_attn.head_out", head=1)
    alone = trace(model, *given, edits=[off]).output[0, 5]
    assert not torch.allclose(found[0], alone, atol=1e-3)


def batches(config: TransformerConfig, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each batch holds where two rows of scores fit."""
    longest = max(each.shape[1] for each in inputs_of(config))
    monkeypatch.setattr(ablation, "NUMBERS_HELD", 2 * 2 * config.n_heads * longest**2)
    return sizes_of(config, [])


def sizes_of(config: TransformerConfig, edits: list[SetCell]) -> list[int]:
    """How many rows each batch of five passes holds."""
    model, given = shaken(config), inputs_of(config, batch=1)
    passed = trace(model, *given, sites=CHEAP_SITES, edits=edits)
    part, told, sizes = parts(config)[0], list[float](), list[int]()

    def edit_of(rows: range) -> Without:
        sizes.append(len(rows))
        return Without(f"{site(part.name, 0)}.head_out", tuple(0 for _ in rows))

    ablation.parted(
        model, passed, given, part.name, 0, 2, 5, edit_of, edits=edits, report=told.append
    )
    assert len(told) == len(sizes)
    assert told[-1] == 1
    return sizes


def test_capped_scores_are_counted_in_the_size_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are never fused, so every row holds heads × queries × keys."""
    few = {"d_model": 4, "n_heads": 4, "d_ff": 4, "attention_cap": 5.0}
    assert batches(config_of("decoder", **few), monkeypatch) == [2, 2, 1]
    assert batches(config_of("encoder-decoder", **few), monkeypatch) == [2, 2, 1]


def test_multiplications_grow_with_the_layers_left_and_the_text() -> None:
    config = config_of("encoder-decoder")
    model, given = shaken(config), inputs_of(config, batch=1)
    longer = [each.repeat(1, 2) for each in given]
    for part in parts(config):
        first, last = (multiplications(model, given, part.name, at) for at in (0, part.layers - 1))
        assert (first > last > 0) == (part.layers > 1)
        assert multiplications(model, longer, part.name, 0) > 1.9 * first
    encoder, decoder = (multiplications(model, given, part.name, 0) for part in parts(config)[:2])
    assert encoder > decoder, "what the encoder changes the decoder reads"
