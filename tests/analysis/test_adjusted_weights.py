"""Display options of attention: what holds for each, by hand and over the passes of real models."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from explorer.analysis.adjusted_weights import (
    AdjustedWeights,
    adjust_head,
    adjust_heads,
    hide_keys,
    keep_mass,
    merge_words,
    percent,
)
from explorer.analysis.adjusted_weights import DisplayOptions as Options
from explorer.catalog import opened_model
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass, run_text
from tests.closeness import assert_close_to
from tests.components.samples import heads
from tests.tiny import NAMES, save_model, save_small_models

SELF = "encoder.self_attn"


@given(some.integers(1, 9), some.integers(2, 12), some.integers(0, 10_000), some.data())
def test_rows_stay_distributions(rows: int, columns: int, seed: int, data: some.DataObject) -> None:
    keys = data.draw(some.sets(some.integers(0, columns - 1), max_size=columns - 1))
    weights = heads(rows, columns, seed=seed)
    left, removed = hide_keys(weights, sorted(keys))
    assert keys or torch.equal(left, weights)
    assert (left[:, list(keys)] == 0).all()
    assert_close_to(left.sum(-1), torch.ones(rows))
    assert_close_to(removed, weights[:, list(keys)].sum(-1))
    kept = [at for at in range(columns) if at not in keys]
    again = weights[:, kept] / weights[:, kept].sum(-1, keepdim=True)
    assert_close_to(left[:, kept], again)


@given(some.integers(1, 9), some.integers(1, 12), some.integers(0, 10_000), some.integers(10, 100))
def test_the_cut_keeps_the_fewest_keys(rows: int, columns: int, seed: int, mass: int) -> None:
    weights, share = heads(rows, columns, seed=seed), mass / 100
    for before, after in zip(weights, keep_mass(weights, share), strict=True):
        held = after[after > 0]
        assert float(held.sum()) >= share - 1e-5
        assert float(held.sum() - held.min()) < share + 1e-5 or mass == 100
        assert torch.equal(held, before[after > 0])
        assert float(held.min()) >= float(before[after == 0].max()) if (after == 0).any() else True


def test_equals_empty_rows_and_what_is_no_number() -> None:
    assert keep_mass(torch.tensor([[0.25, 0.25, 0.25, 0.25]]), 0.5).tolist() == [[0.25, 0.25, 0, 0]]
    assert keep_mass(torch.zeros(1, 3), 0.7).tolist() == [[0, 0, 0]]
    kept = keep_mass(torch.tensor([[float("nan"), 0.1, 0.9]]), 0.7)
    assert kept.isnan().tolist() == [[True, False, False]]
    assert kept[0, 1:].tolist() == pytest.approx([0, 0.9])
    left, removed = hide_keys(torch.tensor([[1.0, 0.0], [0.25, 0.75]]), [0])
    assert left.tolist() == [[0, 0], [0, 1]]
    assert removed.tolist() == [1, 0.25]
    assert hide_keys(torch.zeros(1, 3), [1])[0].tolist() == [[0, 0, 0]]
    assert hide_keys(torch.full((1, 2), 0.5), [0, 1])[0].tolist() == [[0, 0]]


def test_merging_sums_over_keys_and_averages_over_queries_that_see_something() -> None:
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6]])
    merged = merge_words(weights, [(0,), (1, 2)], [(0, 1), (2,)])
    assert merged.flatten().tolist() == pytest.approx([0.75, 0.25, 0.7, 0.3])
    blind = torch.tensor([[0.0, 0.0], [0.5, 0.5]])
    assert merge_words(blind, [(0, 1)], [(0,), (1,)]).tolist() == [[0.5, 0.5]]
    assert merge_words(torch.zeros(2, 2), [(0, 1)], [(0, 1)]).tolist() == [[0]]


def test_a_share_is_said_in_few_digits() -> None:
    assert [percent(share) for share in (0.413, 0, 1, 0.0042)] == ["41 %", "0 %", "100 %", "0.42 %"]
    assert percent(float("nan")) == "an unknown share"


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ForwardPass]:
    """Of every kind of model, and of one whose heads share their keys."""
    folder = save_small_models(tmp_path_factory.mktemp("checkpoints"))
    grouped: dict[str, Any] = {"n_kv_heads": 2, "positions": "rotary", "n_heads": 4}
    save_model(folder, "grouped", **grouped)
    texts = {"letters": "the hat", "reverse": "31415"}
    names = (*NAMES, "grouped")
    opened = {name: opened_model.open_checkpoint(folder / name, name) for name in names}
    return {name: run_text(opened[name], texts.get(name, "the black cat")) for name in names}


def said(made: AdjustedWeights) -> str:
    return " ".join(made.notes)


def test_without_options_it_is_the_head_itself(readings: dict[str, ForwardPass]) -> None:
    options = Options(weighting="value", hidden=(0,), mass=70, words=True)
    for name, forward in readings.items():
        for part in forward.parts:
            together = adjust_heads(forward, part.name, 0, options, range(part.heads))
            for head in range(part.heads):
                made = adjust_head(forward, part.name, 0, head, Options())
                assert torch.equal(made.values, forward.weights(part.name, 0, head)), name
                assert torch.equal(made.allowed, forward.mask(part.name, 0)), name
                assert made.rows == forward.rows(part.name)
                assert made.columns == forward.columns(part.name)
                assert not made.cut.any()
                alone = adjust_head(forward, part.name, 0, head, options)
                assert_close_to(together.values[head], alone.values, what=name)


def test_heads_of_a_layer_or_of_all_are_combined(readings: dict[str, ForwardPass]) -> None:
    for name, of in product(("translation", "letters", "grouped"), ("mean", "max")):
        forward = readings[name]
        for part in forward.parts:
            layers = forward.all_weights(part.name)
            for some_heads, everywhere in ((layers[0], False), (layers.flatten(0, 1), True)):
                options = Options(heads=of, all_layers=everywhere)
                made = adjust_head(forward, part.name, 0, 1, options)
                by_hand = some_heads.mean(0) if of == "mean" else some_heads.amax(0)
                assert_close_to(made.values, by_hand, what=str((name, of, everywhere)))
            whose = f"each of the {part.layers} layers" if part.layers > 1 else "this layer"
            assert f"{part.heads} heads of {whose}" in said(made)


def test_what_is_weighed_is_what_the_head_adds(readings: dict[str, ForwardPass]) -> None:
    for name, forward in readings.items():
        for part in forward.parts:
            stack, kind = part.name.split(".")
            attention: Any = getattr(getattr(forward.trace.model, stack).blocks[0], kind)
            values = forward.trace[f"{site(part.name, 0)}.v"][0]
            for head in range(part.heads):
                made = adjust_head(forward, part.name, 0, head, Options(weighting="value"))
                columns = attention.o_proj.weight.split(attention.d_head, 1)[head]
                lengths = (values[head * len(values) // part.heads] @ columns.mT).norm(dim=-1)
                weights = forward.weights(part.name, 0, head)
                assert_close_to(made.values, weights * lengths, what=name)


def test_rows_add_up_to_one_only_where_they_do(readings: dict[str, ForwardPass]) -> None:
    forward, adds_up = readings["translation"], "Every row sums to 1"
    for options in (Options(), Options(heads="mean"), Options(hidden=(1,)), Options(words=True)):
        made = adjust_head(forward, SELF, 0, 0, options)
        assert adds_up in said(made), options
        assert_close_to(made.values.sum(-1), torch.ones(len(made.rows)), what=str(options))
    for options in (Options(mass=70), Options(heads="max"), Options(weighting="value")):
        assert adds_up not in said(adjust_head(forward, SELF, 0, 0, options)), options


def test_a_pair_is_taken_apart_without_losing_a_cell_and_words_are_merged(published: Path) -> None:
    opened = opened_model.open_checkpoint(published / "bert", "bert")
    pair, whole = run_text(opened, "the capital", "a dog opened"), 0.0
    for name in ("A→A", "A→B", "B→A", "B→B"):
        made = adjust_head(pair, SELF, 0, 0, Options(sentences=name))
        whole += float(made.values.sum())
        assert f"{name}: " in said(made)
        second = {token.second for token in made.columns if not token.special}
        assert second == {name[-1] == "B"}
    assert whole == pytest.approx(len(pair.source), rel=1e-5)
    made = adjust_head(pair, SELF, 0, 0, Options(words=True))
    assert len(made.columns) < len(pair.source) or all(len(group) == 1 for group in made.groups)
    assert "query tokens are" in said(made)
    assert_close_to(made.values.sum(-1), torch.ones(len(made.rows)))


def test_what_is_no_number_is_counted_and_breaks_nothing(small_models: Path) -> None:
    """And rows of which a head has nothing left are said to sum to less."""
    forward = run_text(opened_model.open_checkpoint(small_models / "reviews", "reviews"), "a cat")
    weights = forward.all_weights(SELF).clone()
    weights[0, 0, 1], weights[0, 1, :, 1:] = torch.nan, 0
    forward.trace.values[f"{site(SELF, 0)}.weights"] = weights[:1]
    for options in (Options(), Options(hidden=(0,), mass=50), Options(heads="max", words=True)):
        made = adjust_head(forward, SELF, 0, 0, options)
        assert made.values[1].isnan().any()
        assert not made.values[[0, *range(3, len(made.rows))]].isnan().any()
        assert "cells are NaN in the forward pass itself." in said(made)
    made = adjust_head(forward, SELF, 0, 1, Options(hidden=(0,)))
    assert "Rows whose weight was all on hidden keys" in said(made)
