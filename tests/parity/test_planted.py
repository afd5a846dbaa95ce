"""Mistakes that one could make in a family's table or in the core: the comparison sees each.

On the default weights of the library it would miss many of them (its biases are zero, its
gains are one), which is why every comparison is made on shaken ones too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from models.checkpoint import load_checkpoint
from models.config import TransformerConfig
from models.families import FAMILIES
from models.families.family import Names
from models.families.layout import Rows, Same
from tests.parity.cases import CASES, GPT2, LM, tiny
from tests.parity.comparing import same_values
from tests.parity.families import Pair, build_reference

Table = dict[str, Any]
Saved = Callable[[str, bool], tuple[Any, Path]]
MODELS = CASES | {"gpt2, square": tiny("gpt2, square", "GPT2", GPT2, LM, n_inner=64)}


@dataclass(frozen=True)
class Mistake:
    """Another config, another table of names, or a parameter that nobody read.

    `model` is the name of the case in which it is planted.
    """

    what: str
    model: str
    config: Callable[[TransformerConfig], TransformerConfig] = lambda config: config
    table: Callable[[Table], Table] = lambda table: table
    lost: str | None = None


def field(what: str, model: str, **values: Any) -> Mistake:
    """Another value of the config."""
    return Mistake(what, model, config=lambda config: config.replace(**values))


def names(what: str, model: str, one: str, other: str) -> Mistake:
    """Two of their names taken for each other."""
    return Mistake(what, model, table=lambda t: t | {one: t[other], other: t[one]})


def layout(what: str, model: str, name: str, make: Callable[[Any], Any]) -> Mistake:
    """One of their tensors read another way."""
    return Mistake(what, model, table=lambda table: table | {name: make(table[name])})


def lost(what: str, model: str, parameter: str) -> Mistake:
    """A parameter that nobody read."""
    return Mistake(what, model, lost=parameter)


def in_the_order(*places: int) -> Callable[[Same], Same]:
    return lambda right: right.of(tuple(right.ours[place] for place in places))


def rows(right: Same) -> Same:
    """Neither transposed nor head by head."""
    return Rows(right.ours)


def without_one(right: Same) -> Same:
    return Same(right.ours)


def one_row_off(config: TransformerConfig) -> TransformerConfig:
    rows, offset = config.max_len + config.position_offset, config.position_offset - 1
    return config.replace(position_offset=offset, max_len=rows - offset)


LAYER, HEADS = "layers.{i}.", "layers.{i}.self_attn."
NEOX = LAYER + "attention.query_key_value"
TWO_NORMS = LAYER + "input_layernorm", LAYER + "post_attention_layernorm"
SANDWICH = LAYER + "post_attention_layernorm", LAYER + "pre_feedforward_layernorm"
BART = "decoder.layers.{i}."
DISTANCES = "{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"

MISSED_BY_DEFAULT_WEIGHTS = [
    names("norms swapped", "llama", *TWO_NORMS),
    lost("a bias of the queries", "gpt2", "decoder.blocks.1.self_attn.q_proj.bias"),
    lost("the last bias", "gpt2", "decoder.norm.bias"),
]

MISTAKES = [
    *MISSED_BY_DEFAULT_WEIGHTS,
    layout("c_fc not transposed", "gpt2, square", "h.{i}.mlp.c_fc", rows),
    layout("keys and values swapped", "gpt2", "h.{i}.attn.c_attn", in_the_order(0, 2, 1)),
    field("gelu by its formula", "gpt2", activation="gelu"),
    field("eps of others", "gpt2", norm_eps=1e-6),
    field("scores not scaled", "gpt2", attention_scale=1.0),
    field("the first token decides", "gpt2, classes", pooling="first"),
    field("adjacent pairs", "llama", pairs="adjacent"),
    names("gate and up swapped", "llama", LAYER + "mlp.gate_proj", LAYER + "mlp.up_proj"),
    lost("a bias of the gate", "llama, biases", "decoder.blocks.0.mlp.gate_proj.bias"),
    field("window too short by one", "mistral", windows=(4, 4, 4)),
    field("window too long by one", "mistral", windows=(6, 6, 6)),
    names("norms of queries and keys swapped", "qwen3", HEADS + "q_norm", HEADS + "k_norm"),
    layout("gains without their one", "gemma", LAYER + "input_layernorm", without_one),
    field("logits not capped", "gemma2", logit_cap=None),
    field("windows in the other layers", "gemma2", windows=(0, 5, 0)),
    names("norms swapped", "gemma2", *SANDWICH),
    field("whole heads turned", "phi3, partly turned", d_rotary=None),
    layout("all queries, then all keys", "gpt_neox", NEOX, rows),
    field("in turn, not parallel", "gpt_neox", parallel=False),
    lost("the bias of the words", "gptj", "head.bias"),
    Mistake("positions one row off", "opt", config=one_row_off),
    field("embedding norm lost", "bloom", embedding_norm=False),
    layout("shared key first", "gpt_bigcode", "h.{i}.attn.c_attn", in_the_order(1, 2, 0)),
    field("eps as its file says", "biogpt", norm_eps=1e-12),
    field("segments lost", "bert, masked", n_segments=0),
    field("pre, not post", "bert, masked", norm_position="pre"),
    field("head's transform lost", "bert, masked", head="language-model"),
    field("positions skip padding", "bert, masked", count_padding=False),
    field("pooler without its tanh", "bert, classes", classifier_activation="relu"),
    Mistake("positions one row off", "roberta, masked", config=one_row_off),
    field("only segment lost", "xlm-roberta", n_segments=0),
    field("sinusoids interleaved", "marian", pairs="adjacent"),
    field("final_logits_bias lost", "marian", head_bias=False),
    names(
        "attentions swapped", "bart", BART + "encoder_attn.q_proj", BART + "self_attn.q_proj"
    ),
    field("output not scaled", "t5", logit_scale=1.0),
    field("far distances as usual", "t5", max_distance=128),
    names("tables swapped", "t5", DISTANCES.format("encoder"), DISTANCES.format("decoder")),
]  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """The reference of a case, shaken or not, and the folder that it saves; made once."""

    @cache
    def save(model: str, shaken: bool) -> tuple[Any, Path]:
        case, folder = MODELS[model], tmp_path_factory.mktemp("saved")
        reference = build_reference(case, shaken)
        reference.save_pretrained(folder)
        return reference.double() if case.exact else reference, folder

    return save


def plant(mistake: Mistake, saved: Saved, *, shaken: bool = True) -> Pair:
    """The reference and what becomes of its folder with the mistake, in float64 if it may be."""
    case = MODELS[mistake.model]
    family = FAMILIES[case.config.model_type]

    def wrong(config: TransformerConfig) -> Names:
        return mistake.table(dict(family.names(config)))

    mistaken = replace(family, config=lambda r: mistake.config(family.config(r)), names=wrong)
    reference, folder = saved(mistake.model, shaken)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FAMILIES, case.config.model_type, mistaken)
        ours = load_checkpoint(folder)
    if mistake.lost is not None:
        with torch.no_grad():
            ours.model.get_parameter(mistake.lost).zero_()
    pair = Pair(case, reference, ours)
    return pair.double() if case.exact else pair


def test_every_mistake_is_seen(saved: Saved, subtests: pytest.Subtests) -> None:
    for mistake in MISTAKES:
        with (
            subtests.test(mistake.what, model=mistake.model),
            pytest.raises(AssertionError, match="differs by"),
        ):
            same_values(plant(mistake, saved))


def test_without_one_nothing_differs(saved: Saved) -> None:
    for model in ("gpt2, square", "bloom", "bert, masked", "t5"):
        same_values(plant(Mistake("nothing", model), saved))


def test_default_weights_alone_would_miss_them(saved: Saved) -> None:
    for mistake in MISSED_BY_DEFAULT_WEIGHTS:
        same_values(plant(mistake, saved, shaken=False))
