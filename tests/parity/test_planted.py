"""Mistakes that one could make in a family's tables, planted: the comparison sees each.

On the default weights of the library it would miss many of them (its biases are zero, its
gains are one), which is why every comparison is made on shaken ones too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models.checkpoint import load_checkpoint
from models.config import TransformerConfig
from models.families import FAMILIES
from models.families.family import Family
from models.families.layout import Rows, Same
from tests.parity.cases import CASES, GPT2, LM, tiny
from tests.parity.families import Pair, build_reference, same_values

Mistake = Callable[[Family], Family]
MODELS = CASES | {"gpt2, square": tiny("gpt2, square", "GPT2", GPT2, LM, n_inner=64)}


def field(**values: Any) -> Mistake:
    """Another value of the config."""
    return lambda family: replace(family, config=lambda r: family.config(r).replace(**values))


def one_row_off(family: Family) -> Family:
    """Positions that begin a row too early."""

    def wrong(config: TransformerConfig) -> TransformerConfig:
        offset = config.position_offset - 1
        return config.replace(position_offset=offset, max_len=config.max_len + 1)

    return replace(family, config=lambda read: wrong(family.config(read)))


def table(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Mistake:
    """Another table of names."""

    def mistaken(family: Family) -> Family:
        def wrong(config: TransformerConfig) -> dict[str, Any]:
            names: dict[str, Any] = dict(family.names(config))
            return names | change(names)

        return replace(family, names=wrong)

    return mistaken


def swapped(one: str, other: str) -> Mistake:
    """Two of their names taken for each other."""
    return table(lambda names: {one: names[other], other: names[one]})


def read_as(layout: type[Same], name: str) -> Mistake:
    """One of their tensors read in another layout."""
    return table(lambda names: {name: layout(names[name].ours)})


def in_the_order(*places: int, name: str) -> Mistake:
    """The parts of one of their tensors taken for each other."""
    return table(
        lambda names: {name: names[name].of(tuple(names[name].ours[place] for place in places))}
    )


LAYER, HEADS, BART = "layers.{i}.", "layers.{i}.self_attn.", "decoder.layers.{i}."
TWO_NORMS = LAYER + "input_layernorm", LAYER + "post_attention_layernorm"
SANDWICH = LAYER + "post_attention_layernorm", LAYER + "pre_feedforward_layernorm"
DISTANCES = "{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"

MISTAKES: dict[str, list[Mistake]] = {
    "gpt2": [
        in_the_order(0, 2, 1, name="h.{i}.attn.c_attn"), field(activation="gelu"),
        field(norm_eps=1e-6), field(attention_scale=1.0),
    ],
    "gpt2, square": [read_as(Rows, "h.{i}.mlp.c_fc")],
    "gpt2, classes": [field(pooling="first")],
    "llama": [
        swapped(LAYER + "mlp.gate_proj", LAYER + "mlp.up_proj"), field(pairs="adjacent"),
        swapped(*TWO_NORMS),
    ],
    "mistral": [field(windows=(4, 4, 4)), field(windows=(6, 6, 6))],
    "qwen3": [swapped(HEADS + "q_norm", HEADS + "k_norm")],
    "gemma": [read_as(Same, LAYER + "input_layernorm")],
    "gemma2": [field(logit_cap=None), field(windows=(0, 5, 0)), swapped(*SANDWICH)],
    "phi3, partly turned": [field(d_rotary=None)],
    "gpt_neox": [read_as(Rows, LAYER + "attention.query_key_value"), field(parallel=False)],
    "opt": [one_row_off],
    "bloom": [field(embedding_norm=False)],
    "gpt_bigcode": [in_the_order(1, 2, 0, name="h.{i}.attn.c_attn")],
    "biogpt": [field(norm_eps=1e-12)],
    "bert, masked": [
        field(n_segments=0), field(norm_position="pre"), field(head="language-model"),
        field(count_padding=False),
    ],
    "bert, classes": [field(classifier_activation="relu"), field(pooling="mean")],
    "roberta, masked": [one_row_off],
    "marian": [field(pairs="adjacent"), field(head_bias=False)],
    "bart": [swapped(BART + "encoder_attn.q_proj", BART + "self_attn.q_proj")],
    "t5": [
        field(logit_scale=1.0), field(max_distance=128),
        swapped(DISTANCES.format("encoder"), DISTANCES.format("decoder")),
    ],
}  # fmt: skip


def planted(model: str, mistakes: list[Mistake], folder: Path, shaken: bool) -> Iterator[Pair]:
    """The reference and what becomes of its folder with each mistake, in float64 if it may be."""
    case = MODELS[model]
    kind = case.config.model_type
    reference = build_reference(case, shaken)
    reference.save_pretrained(folder)
    for mistake in mistakes:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(FAMILIES, kind, mistake(FAMILIES[kind]))
            pair = Pair(case, reference, load_checkpoint(folder))
        yield pair.double() if case.exact else pair


@pytest.mark.parametrize("model", MISTAKES)
def test_every_mistake_is_seen_and_nothing_where_there_is_none(model: str, tmp_path: Path) -> None:
    none, *wrong = planted(model, [field(), *MISTAKES[model]], tmp_path, shaken=True)
    same_values(none)
    for pair in wrong:
        with pytest.raises(AssertionError, match="differs by"):
            same_values(pair)


def test_default_weights_alone_would_miss_that_norms_are_swapped(tmp_path: Path) -> None:
    for model, norms in (("llama", TWO_NORMS), ("gemma2", SANDWICH)):
        (pair,) = planted(model, [swapped(*norms)], tmp_path / model, shaken=False)
        same_values(pair)
