"""Mistakes in the tables of decoders: the comparison catches every one.

On the default weights of the library it would miss many of them (its biases are zero, its
gains are one), which is why every comparison is made on shaken ones too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from models.families.layout import Rows, Same
from models.heads import LanguageModelHead
from models.transformer import Transformer
from tests.parity import test_decoder_families
from tests.parity.comparing import same_values
from tests.parity.decoders import GPT2, decoder
from tests.parity.families import Case
from tests.parity.planting import Mistake, core, differs, field, layout, lost, names, plant

SQUARE = decoder("gpt2, square", "GPT2", GPT2, n_inner=64, head="LMHeadModel")
CASES: dict[str, Case] = {case.name: case for case in [*test_decoder_families.CASES, SQUARE]}


def in_the_order(*places: int) -> Callable[[Same], Same]:
    return lambda right: right.of(tuple(right.ours[place] for place in places))


def rows(right: Same) -> Same:
    """Neither transposed nor head by head."""
    return Rows(right.ours)


def without_one(right: Same) -> Same:
    return Same(right.ours)


def other_slopes(make: Callable[[Tensor], Tensor]) -> Callable[[Transformer], None]:
    def change(model: Transformer) -> None:
        positions: Any = model.last_stack.positions
        slopes = positions.slopes
        positions.slopes = lambda: make(slopes())

    return change


def even_steps(slopes: Tensor) -> Tensor:
    return 2 ** (-8 * torch.arange(1, len(slopes) + 1) / len(slopes))


def tie(model: Transformer) -> None:
    assert isinstance(model.head, LanguageModelHead)
    model.head.weight = None


def forget(name: str, value: Any) -> Callable[[Transformer], None]:
    """Another value of an attention layer's switch, in the last layer alone."""
    return lambda model: setattr(model.get_submodule("decoder.blocks.2.self_attn"), name, value)


LAYER, HEADS = "layers.{i}.", "layers.{i}.self_attn."
NEOX, BLOOM = LAYER + "attention.query_key_value", "h.{i}.self_attention.query_key_value"
TWO_NORMS = LAYER + "input_layernorm", LAYER + "post_attention_layernorm"
SANDWICH = LAYER + "post_attention_layernorm", LAYER + "pre_feedforward_layernorm"

MISTAKES = [
    layout("c_proj not transposed", "gpt2", "h.{i}.attn.c_proj", rows),
    layout("c_fc not transposed", "gpt2, square", "h.{i}.mlp.c_fc", rows),
    layout("second c_proj not transposed", "gpt2, square", "h.{i}.mlp.c_proj", rows),
    layout("queries and keys swapped", "gpt2", "h.{i}.attn.c_attn", in_the_order(1, 0, 2)),
    layout("keys and values swapped", "gpt2", "h.{i}.attn.c_attn", in_the_order(0, 2, 1)),
    names("norms swapped", "gpt2", "h.{i}.ln_1", "h.{i}.ln_2"),
    field("gelu by its formula", "gpt2", activation="gelu"),
    field("gelu by tanh", "gpt2, gelu", activation="gelu-tanh"),
    field("relu", "gpt2", activation="relu"),
    field("eps of others", "gpt2", norm_eps=1e-6),
    field("post, not pre", "gpt2", norm_position="post"),
    field("last norm lost", "gpt2", final_norm=False),
    field("embedding scaled", "gpt2", scale_embedding=True),
    field("scores not scaled", "gpt2", attention_scale=1.0),
    field("sinusoids on top", "gpt2", positions="sinusoidal"),
    field("parallel, not in turn", "gpt2", parallel=True),
    lost("a bias of the queries", "gpt2", "decoder.blocks.1.self_attn.q_proj.bias"),
    lost("a bias of the output", "gpt2", "decoder.blocks.1.self_attn.o_proj.bias"),
    lost("a bias of the feed-forward layer", "gpt2", "decoder.blocks.2.mlp.up_proj.bias"),
    lost("the last bias", "gpt2", "decoder.norm.bias"),
    core("output taken for the embedding", "gpt2, own output", tie),
    field("the first token decides", "gpt2, classes", pooling="first"),
    field("the mean decides", "llama, classes", pooling="mean"),
    field("adjacent pairs", "llama", pairs="adjacent"),
    field("θ of others", "llama", rope_theta=500_000.0),
    field("half a head turned", "llama", d_rotary=8),
    field("eps of others", "llama", norm_eps=1e-5),
    field("gelu, not silu", "llama", activation="gelu"),
    names("gate and up swapped", "llama", LAYER + "mlp.gate_proj", LAYER + "mlp.up_proj"),
    names("keys and values swapped", "llama", HEADS + "k_proj", HEADS + "v_proj"),
    names("queries and output swapped", "llama", HEADS + "q_proj", HEADS + "o_proj"),
    names("norms swapped", "llama", *TWO_NORMS),
    lost("a bias of the gate", "llama, biases", "decoder.blocks.0.mlp.gate_proj.bias"),
    lost("a bias of the output", "llama, biases", "decoder.blocks.1.self_attn.o_proj.bias"),
    field("window too short by one", "mistral", windows=(4, 4, 4)),
    field("window too long by one", "mistral", windows=(6, 6, 6)),
    field("no window", "mistral", windows=()),
    lost("a bias of the keys", "qwen2", "decoder.blocks.1.self_attn.k_proj.bias"),
    field("one window more", "qwen2, windows from the second layer on", windows=(5, 5, 5)),
    field("queries not normed", "qwen3", qk_norm=False),
    names("norms of queries and keys swapped", "qwen3", HEADS + "q_norm", HEADS + "k_norm"),
    layout("a gain without its one", "gemma", "norm", without_one),
    layout("gains without their one", "gemma", LAYER + "input_layernorm", without_one),
    field("embedding not scaled", "gemma", scale_embedding=False),
    field("gelu as its file says", "gemma, gelu", activation="gelu"),
    field("scores not capped", "gemma2", attention_cap=None),
    field("logits not capped", "gemma2", logit_cap=None),
    field("caps swapped", "gemma2", attention_cap=2.5, logit_cap=1.5),
    field("scores scaled by the head", "gemma2", attention_scale=None),
    field("windows in the other layers", "gemma2", windows=(0, 5, 0)),
    names("norms swapped", "gemma2", *SANDWICH),
    core("a cap forgotten", "gemma2", forget("cap", None)),
    layout("keys and values swapped", "phi3", HEADS + "qkv_proj", in_the_order(0, 2, 1)),
    layout("gate and up swapped", "phi3", LAYER + "mlp.gate_up_proj", in_the_order(1, 0)),
    field("whole heads turned", "phi3, partly turned", d_rotary=None),
    layout("all queries, then all keys", "gpt_neox", NEOX, rows),
    layout("keys before queries", "gpt_neox", NEOX, in_the_order(1, 0, 2)),
    field("in turn, not parallel", "gpt_neox", parallel=False),
    field("parallel, not in turn", "gpt_neox, one after the other", parallel=True),
    field("θ of others", "gpt_neox, one after the other", rope_theta=10_000.0),
    field("adjacent pairs", "gpt_neox", pairs="adjacent"),
    names("norms swapped", "gpt_neox", *TWO_NORMS),
    field("halves, not adjacent pairs", "gptj", pairs="halves"),
    field("whole heads turned", "gptj", d_rotary=16),
    field("gelu by its formula", "gptj", activation="gelu"),
    lost("the bias of the words", "gptj", "head.bias"),
    field("positions one row off", "opt", position_offset=1, max_len=38),
    field("gelu, not relu", "opt", activation="gelu"),
    field("last norm lost", "opt", final_norm=False),
    field("pre, not post", "opt, post-norm, no biases", norm_position="pre"),
    core("slopes reversed", "bloom", other_slopes(lambda slopes: slopes.flip(0))),
    core("far tokens preferred", "bloom", other_slopes(lambda slopes: -slopes)),
    core("slopes in even steps", "bloom, six heads", other_slopes(even_steps)),
    field("no slopes", "bloom", positions="none"),
    field("embedding norm lost", "bloom", embedding_norm=False),
    field("gelu by its formula", "bloom", activation="gelu"),
    layout("all queries, then all keys", "bloom", BLOOM, rows),
    field("scores scaled", "gpt_neo", attention_scale=None),
    field("windows in the other layers", "gpt_neo", windows=(0, 5, 0)),
    field("whole heads turned", "phi", d_rotary=None),
    lost("the bias of the words", "phi", "head.bias"),
    field("parallel, not in turn", "stablelm", parallel=True),
    field("window too short by one", "starcoder2", windows=(4, 4, 4)),
    layout("shared key first", "gpt_bigcode", "h.{i}.attn.c_attn", in_the_order(1, 2, 0)),
    field("eps as its file says", "biogpt", norm_eps=1e-12),
    field("embedding not scaled", "biogpt", scale_embedding=False),
]  # fmt: skip

MISSED_BY_DEFAULT_WEIGHTS = [
    names("norms swapped", "gpt2", "h.{i}.ln_1", "h.{i}.ln_2"),
    names("norms swapped", "llama", *TWO_NORMS),
    names("norms swapped", "gemma2", *SANDWICH),
    lost("a bias of the queries", "gpt2", "decoder.blocks.1.self_attn.q_proj.bias"),
    lost("a bias of the feed-forward layer", "gpt2", "decoder.blocks.2.mlp.up_proj.bias"),
    lost("the last bias", "gpt2", "decoder.norm.bias"),
    lost("the bias of the words", "gptj", "head.bias"),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_is_caught(mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="differs by"):
        differs(mistake, CASES[mistake.case], tmp_path, monkeypatch)


def test_without_one_nothing_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    differs(Mistake("nothing", SQUARE.name), SQUARE, tmp_path, monkeypatch)


@pytest.mark.parametrize("mistake", MISSED_BY_DEFAULT_WEIGHTS, ids=str)
def test_default_weights_alone_would_miss_it(
    mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[mistake.case]
    same_values(plant(mistake, case, tmp_path, monkeypatch, shaken=False))
