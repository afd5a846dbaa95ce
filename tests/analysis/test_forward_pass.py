"""The stages of a pass: each is the pass's own value and follows from those before it.

The equations are the formulas in plain numbers, so each is compared with the value of the pass.
"""

import re
from dataclasses import fields
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.analysis.forward_pass.kinds import KINDS
from explorer.analysis.forward_pass.pass_values import PassValues, record_pass
from explorer.analysis.forward_pass.stage import Stage
from explorer.analysis.forward_pass.stage_cut import cut_stage, row_stack, tokens_of
from explorer.analysis.forward_pass.stages import sizes, stages_of
from explorer.catalog import opened_model
from explorer.inference import forward_pass
from explorer.inference.forward_pass import ForwardPass
from models import TransformerConfig
from models.presets import REPOSITORY_README, WEB_TUTORIAL_CLASSIFIER
from models.trace import Trace
from tests import tiny
from tests.analysis.kinds_of_model import CONFIGS, UNREAD
from tests.closeness import assert_close_to

EXACT = 1e-6


def test_every_field_of_the_config_is_off_its_default_in_one_of_them() -> None:
    plain = TransformerConfig()
    for each in fields(TransformerConfig):
        values = {getattr(config, each.name) for config in CONFIGS.values()}
        assert each.name in UNREAD or values - {getattr(plain, each.name)}, each.name


def values_of(of: ForwardPass, head: int = 0) -> PassValues:
    record = lru_cache(partial(record_pass, of))
    return PassValues(of, head, len(of.target or of.source) - 1, record)


def worst(of: ForwardPass) -> float:
    """The largest error of any stage against float64, of the first and the last head."""
    heads = [values_of(of, head) for head in {0, of.config.n_heads - 1}]
    return max(each.relative_error(stage) for each in heads for stage in each.stages.values())


def every_cell_is_opened(values: PassValues) -> None:
    """As an equation from the stages that it reads, whose total is the pass's own number.

    A row in which every key is masked has none to show.
    """
    taken_apart = set[str]()
    for stage in values.stages.values():
        value = values[stage.name].double()
        last = (len(value) - 1, value.shape[-1] - 1)
        for row, column in {(0, 0), (last[0], 0), last} if value.dim() == 2 else ():
            made = values.equation(stage, row, column)
            if made is None:
                assert stage.kind == "weights", stage.name
                assert not values.mask(stage)[row].any()
                continue
            shown = float(value[row, column])
            assert made.total == pytest.approx(shown, rel=1e-6, abs=1e-6), stage.name
            assert "=" in made.of(shown)
            of_terms = [abs(x * w) for _, x, w in made.terms]
            assert of_terms == sorted(of_terms, reverse=True)
            taken_apart |= {stage.kind} if of_terms else set()
    assert {"output projection", "projected", "products", "head out"} <= taken_apart


def test_every_stage_follows_from_those_before_and_every_number_opens(found: ForwardPass) -> None:
    assert worst(found) <= EXACT
    every_cell_is_opened(values_of(found, head=found.config.n_heads - 1))


def test_of_a_pair_of_texts_too(published: Path) -> None:
    bert = opened_model.open_checkpoint(published / "bert", "bert")
    pair = values_of(forward_pass.run_text(bert, "the cat was good", "the dog"))
    assert set(pair.segments("encoder").tolist()) == {0, 1}
    assert worst(pair.forward) <= EXACT
    every_cell_is_opened(pair)


def test_of_trained_models_as_they_are_and_stay() -> None:
    """In float32, as on the screen; other threads use the weights: what is in float64 is a copy."""
    for name in ("translation", "shakespeare", "negation"):
        opened = opened_model.open_model(name)
        before = tiny.weights(opened.model)
        assert worst(forward_pass.run_text(opened, opened.example)) <= EXACT, name
        tiny.assert_equal_weights(tiny.weights(opened.model), before)


def test_a_planted_mistake_is_seen_where_it_is(found: ForwardPass) -> None:
    """A value of the pass that is another: its own stage, and those that read it, say so."""
    site = f"{found.config.stacks[0]}.0.self_attn"
    found.trace.values[f"{site}.v"] = found.trace[f"{site}.v"] * 1.1
    values = values_of(found)
    for name, is_wrong in (("v", True), ("head_out", True), ("k", False)):
        error = values.relative_error(values.stages[f"{site}.{name}"])
        assert (error > 1e-2) if is_wrong else (error <= EXACT), name


def test_every_value_is_what_the_pass_had_there(found: ForwardPass) -> None:
    values = values_of(found, head=1 % found.config.n_heads)
    everything = record_pass(found, ("*",))
    for stage in values.stages.values():
        if not stage.site or stage.kind in ("logits", "class logits"):
            continue
        seen, mine = everything[stage.site][0], values[stage.name]
        if stage.per_head:
            seen = seen[min(values.head_of(len(seen)), len(seen) - 1)]
        if stage.kind == "masked":
            seen = seen.masked_fill(seen == torch.finfo(seen.dtype).min, -torch.inf)
        mine = mine[-1:] if stage.kind == "transform" else mine  # which the pass reads there
        assert_close_to(mine[0] if stage.per_text else mine, seen, what=stage.name)
    given, mine = found.trace["logits"][0], values["logits"]
    assert_close_to(mine[-len(given) :] if given.dim() > 1 else mine[0], given)
    if found.config.score_function == "softmax":
        assert_close_to(values["probabilities"].sum(-1), torch.ones_like(mine[:, 0]))


def test_nothing_grows_with_layers_times_heads_times_tokens_squared() -> None:
    """What is kept of a pass through every stage: streams and heads' outputs, block by block."""
    of = forward_pass.run_text(opened_model.open_model("shakespeare"), "to be or not to be " * 9)
    kept: dict[tuple[str, ...], Trace] = {}

    def record(sites: tuple[str, ...]) -> Trace:
        if sites not in kept:
            kept[sites] = record_pass(of, sites)
        return kept[sites]

    for name in PassValues(of, 0, 0, record).stages:
        PassValues(of, 0, 0, record)[name]
    tokens = len(of.target)
    assert tokens > 50
    for made in kept.values():
        assert all(value.shape[-2:] != (tokens, tokens) for value in made.values.values())


def formula(stage: Stage, config: TransformerConfig) -> str:
    return KINDS[stage.kind].formula(stage, config)


def sentence(stage: Stage, config: TransformerConfig) -> str:
    return KINDS[stage.kind].sentence(config)


README = REPOSITORY_README.replace(d_model=8, n_heads=2, n_layers=1, d_ff=8)


def test_what_is_not_scaled_is_not_called_scaled() -> None:
    """T5 scales nothing: neither its formula nor its sentence may say so."""
    scores = next(stage for stage in stages_of(README) if stage.kind == "scores")
    unscaled = README.replace(attention_scale=1.0)
    assert sentence(scores, README).startswith("Scaled")
    assert "capped" not in sentence(scores, README)
    assert "capped" in sentence(scores, README.replace(attention_cap=50.0))
    assert "does not scale" in sentence(scores, unscaled)
    assert formula(scores, unscaled) == r"s_{ij} = q_i \cdot k_j"


def test_the_norm_of_heads_names_what_is_normed_and_the_models_own_number() -> None:
    for positions in ("sinusoidal", "rotary"):
        made = README.replace(qk_norm=True, norm_eps=1e-6, positions=positions)
        normed = [stage for stage in stages_of(made) if stage.kind == "head norm"]
        letters = [formula(stage, made).split()[1] for stage in normed]
        assert letters == ["q", "k"] * (len(normed) // 2) != []
        for stage, letter in zip(normed, letters, strict=True):
            size = rf"\sqrt{{\tfrac{{1}}{{w}}\sum {letter}_i^2 + 10^{{-6}}}}"
            assert rf"\frac{{{letter}}}{{{size}}}" in formula(stage, made)


CLASSES = ("pooled", "class hidden", "class logits")


def test_the_shapes_are_those_of_the_values(found: ForwardPass) -> None:
    values = values_of(found)
    for stage in values.stages.values():
        tokens = len(tokens_of(values, stage.stack))
        keys = len(found.source) if stage.branch == "cross_attn" else tokens
        config = found.config.of_encoder if stage.stack == "encoder" else found.config
        known = sizes(config, 1, tokens, len(found.source), keys)
        shape = [known[symbol] for symbol in stage.shapes[-1]]
        own = list(values[stage.name].shape)
        is_class = stage.kind == "probabilities" and found.config.head == "classifier"
        shape = shape if stage.kind in CLASSES or is_class else shape[1:]
        assert own == (shape[1:] if stage.per_head else shape), stage.name
        assert row_stack(stage) in found.config.stacks
        assert formula(stage, found.config)
        assert sentence(stage, found.config)


UNSHOWN = re.compile(r"(.*\.)?(positions|mask|[qkv]_input)|.*\.bias")
"""Sites without a stage: no value of the pass, or a bias of zeros."""


def test_every_site_and_every_module_of_the_model_is_of_a_stage(found: ForwardPass) -> None:
    """In the order of the pass, so that what is added to the model is missed here."""
    stages = stages_of(found.config)
    sites = [stage.site for stage in stages if stage.site]
    everything = record_pass(found, ("*",)).values
    seen = [*everything]
    shown = {id(everything[name]) for stage in stages for name in stage.aliases}
    more = [site for site in seen if id(everything[site]) not in shown]
    assert [site for site in more if not UNSHOWN.fullmatch(site)] == []
    order = [site for site in sites if not site.endswith((".bias", "resid_pre"))]
    assert [site for site in seen if site in order] == order
    modules = {stage.module for stage in stages}
    for name, module in found.trace.model.named_modules():
        if not name.startswith("head") and next(module.parameters(recurse=False), None) is not None:
            assert name.removesuffix(".table") in modules, name


def formulas(config: Any) -> dict[str, str]:
    return {stage.name: formula(stage, config) for stage in stages_of(config)}


def test_a_value_keeps_its_symbol_where_it_is_read() -> None:
    """The last norm makes m in the encoder and y before the logits; post-norm norms x itself."""
    normed = formulas(README.replace(norm_position="pre", final_norm=True))
    assert normed["encoder.final"].startswith("m =")
    assert normed["decoder.0.cross_attn.k"].startswith(r"K = m\,W_K")
    assert "of the encoder" not in normed["decoder.0.cross_attn.k"]
    assert normed["decoder.0.cross_attn.q"].startswith(r"Q = y\,W_Q")
    assert normed["logits"].startswith(r"\ell = y\,")
    plain = formulas(README)
    assert plain["encoder.0.resid_post"].startswith(r"x \leftarrow")
    assert plain["decoder.0.cross_attn.k"].endswith(r"m = x \text{ of the encoder}")
    assert plain["logits"].startswith(r"\ell = x\,")
    classes = formulas(WEB_TUTORIAL_CLASSIFIER)
    assert classes["head.pooled"].startswith("c =")
    assert "c" in classes["head.hidden"]
    assert classes["logits"].startswith(r"\ell = h\,")


def test_every_row_of_the_answers_has_its_own_best_among_the_columns() -> None:
    opened = opened_model.open_model("translation")
    of = values_of(forward_pass.run_text(opened, opened.example))
    values = of["probabilities"]
    for row in range(len(values)):
        drawn = cut_stage(of, of.stages["probabilities"], row, 0, str)
        assert set(values[torch.tensor(drawn.rows)].argmax(-1).tolist()) <= set(drawn.columns)
        assert drawn.columns[:2] == tuple(values[row].topk(2).indices.tolist())
        assert len(set(drawn.columns)) == len(drawn.columns) <= 16
