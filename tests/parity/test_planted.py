"""Mistakes that one could make in a family's tables, planted: the comparison sees each.

On the default weights of the library it would miss many of them (its biases are zero, its
gains are one), which is why every comparison is made on shaken ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from models.config import TransformerConfig
from models.families import FAMILIES
from models.families.family import Family
from models.families.layout import Rows, Same
from models.loading.checkpoint import load_checkpoint
from models.model import Transformer
from models.output_heads import LanguageModelHead
from tests.parity.cases import CASES, GPT2, LM, tiny
from tests.parity.families import Pair, build_reference, same_values

MODELS = CASES | {"gpt2, square": tiny("gpt2, square", "GPT2", GPT2, LM, n_inner=64)}
Table = dict[str, Any]


@dataclass(frozen=True)
class Mistake:
    """Another family, or a change of the model that was loaded."""

    family: Callable[[Family], Family] = lambda family: family
    model: Callable[[Transformer], Any] = lambda model: None


def config(change: Callable[[TransformerConfig], TransformerConfig]) -> Mistake:
    return Mistake(lambda family: replace(family, config=lambda r: change(family.config(r))))


def field(**values: Any) -> Mistake:
    """Another value of the config."""
    return config(lambda right: right.replace(**values))


def one_row_off(right: TransformerConfig) -> TransformerConfig:
    """Positions that begin a row too early."""
    return right.replace(position_offset=right.position_offset - 1, max_len=right.max_len + 1)


def table(change: Callable[[Table], Table]) -> Mistake:
    """Another table of names."""

    def mistaken(family: Family) -> Family:
        def wrong(config: TransformerConfig) -> Table:
            names = dict(family.names(config))
            return names | change(names)

        return replace(family, names=wrong)

    return Mistake(mistaken)


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


def lost(parameter: str) -> Mistake:
    """A parameter that nobody read."""
    return Mistake(model=lambda model: model.get_parameter(parameter).data.zero_())


def slopes(make: Callable[[Tensor], Tensor]) -> Mistake:
    """Other slopes of ALiBi."""

    def change(model: Transformer) -> None:
        positions: Any = model.last_stack.positions
        right = positions.slopes()
        positions.slopes = lambda: make(right)

    return Mistake(model=change)


def in_even_steps(right: Tensor) -> Tensor:
    return 2 ** (-8 * torch.arange(1, len(right) + 1) / len(right))


def tied(model: Transformer) -> None:
    """The output is taken for the embedding."""
    assert isinstance(model.head, LanguageModelHead)
    model.head.weight = None


def cap_of_the_last_layer_lost(model: Transformer) -> None:
    attention: Any = model.get_submodule("decoder.blocks.2.self_attn")
    attention.cap = None


def second_segment_lost(model: Transformer) -> None:
    table = model.get_parameter("encoder.segments.weight").data
    table[1] = table[0]


def turned_round(model: Any) -> None:
    """Each stack counts distances as only the other one should."""
    for stack in (model.encoder, model.decoder):
        stack.positions.causal = not stack.positions.causal


LAYER, HEADS, BART = "layers.{i}.", "layers.{i}.self_attn.", "decoder.layers.{i}."
TWO_NORMS = LAYER + "input_layernorm", LAYER + "post_attention_layernorm"
SANDWICH = LAYER + "post_attention_layernorm", LAYER + "pre_feedforward_layernorm"
DISTILBERT = "transformer.layer.{i}."
T5 = "encoder.block.{i}.layer.1.DenseReluDense."
DISTANCES = "{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"

MISTAKES: dict[str, list[Mistake]] = {
    "gpt2": [
        in_the_order(0, 2, 1, name="h.{i}.attn.c_attn"), field(activation="gelu"),
        field(norm_eps=1e-6), field(attention_scale=1.0), field(positions="none"),
        field(final_norm=False), field(scale_embedding=True),
        lost("decoder.blocks.1.self_attn.q_proj.bias"), lost("decoder.blocks.2.mlp.up_proj.bias"),
    ],
    "gpt2, square": [read_as(Rows, "h.{i}.mlp.c_fc")],
    "gpt2, own output": [Mistake(model=tied)],
    "gpt2, classes": [field(pooling="mean")],
    "llama": [
        swapped(LAYER + "mlp.gate_proj", LAYER + "mlp.up_proj"), field(pairs="adjacent"),
        swapped(*TWO_NORMS), field(rope_theta=500_000.0), field(d_rotary=8), field(norm_eps=1e-5),
    ],
    "llama, biases": [lost("decoder.blocks.1.self_attn.o_proj.bias")],
    "llama, classes": [field(pooling="mean")],
    "mistral": [field(windows=(4, 4, 4)), field(windows=(6, 6, 6))],
    "qwen2": [lost("decoder.blocks.1.self_attn.k_proj.bias")],
    "qwen3": [swapped(HEADS + "q_norm", HEADS + "k_norm"), field(qk_norm=False)],
    "gemma": [read_as(Same, LAYER + "input_layernorm"), field(scale_embedding=False)],
    "gemma2": [
        field(logit_cap=None), field(windows=(0, 5, 0)), swapped(*SANDWICH),
        field(attention_cap=None), field(attention_scale=None),
        Mistake(model=cap_of_the_last_layer_lost),
    ],
    "phi3, partly turned": [field(d_rotary=None)],
    "gpt_neox": [
        read_as(Rows, LAYER + "attention.query_key_value"), field(parallel=False),
        field(d_rotary=None),
    ],
    "gpt_neox, one after the other": [field(rope_theta=10_000.0)],
    "gptj": [field(pairs="halves"), field(d_rotary=16), lost("head.bias")],
    "opt": [config(one_row_off), field(final_norm=False), field(activation="gelu")],
    "opt, post-norm, no biases": [field(norm_position="pre")],
    "bloom": [
        field(embedding_norm=False), field(positions="none"), slopes(lambda right: right.flip(0)),
        slopes(lambda right: -right),
    ],
    "bloom, six heads": [slopes(in_even_steps)],
    "phi": [field(d_rotary=None), lost("head.bias")],
    "stablelm": [field(parallel=True), field(d_rotary=None)],
    "starcoder2": [field(windows=(4, 4, 4)), lost("decoder.blocks.0.mlp.up_proj.bias")],
    "gpt_bigcode": [in_the_order(1, 2, 0, name="h.{i}.attn.c_attn")],
    "gpt_neo": [field(attention_scale=None), field(windows=(0, 5, 0))],
    "biogpt": [field(norm_eps=1e-12), field(scale_embedding=False)],
    "bert, masked": [
        field(n_segments=0), field(norm_position="pre"), field(head="language-model"),
        field(count_padding=False), field(embedding_norm=False), field(head_bias=False),
        Mistake(model=second_segment_lost),
    ],
    "bert, classes": [field(classifier_activation="relu"), field(pooling="mean")],
    "distilbert, masked": [
        field(norm_eps=1e-5),
        swapped(DISTILBERT + "sa_layer_norm", DISTILBERT + "output_layer_norm"),
    ],
    "distilbert, classes": [field(classifier_activation="tanh")],
    "roberta, masked": [config(one_row_off), field(count_padding=True)],
    "marian": [
        field(pairs="adjacent"), field(head_bias=False), field(scale_embedding=False),
        field(activation="gelu"),
    ],
    "bart": [
        swapped(BART + "encoder_attn.q_proj", BART + "self_attn.q_proj"), config(one_row_off),
        field(embedding_norm=False),
    ],
    "mbart": [field(norm_position="post"), field(final_norm=False)],
    "plbart": [config(one_row_off)],
    "pegasus": [field(pairs="adjacent")],
    "blenderbot": [field(final_norm=False)],
    "t5": [
        field(logit_scale=1.0), field(max_distance=128), field(attention_scale=None),
        swapped(DISTANCES.format("encoder"), DISTANCES.format("decoder")),
        Mistake(model=turned_round),
    ],
    "t5 v1.1": [
        swapped(T5 + "wi_0", T5 + "wi_1"), field(activation="gelu"), field(logit_scale=24**-0.5),
    ],
    "mt5": [field(logit_scale=24**-0.5)],
}  # fmt: skip


def planted(model: str, mistakes: list[Mistake], folder: Path) -> Iterator[Pair | None]:
    """The reference and what becomes of its folder with each mistake, in float64 if it may be.

    None where sinusoids are stored in the folder, and read as other positions than the mistake's.
    """
    case = MODELS[model]
    kind = case.config.model_type
    reference = build_reference(case)
    reference.save_pretrained(folder)
    for mistake in mistakes:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(FAMILIES, kind, mistake.family(FAMILIES[kind]))
            pair = Pair(case, reference, load_checkpoint(folder))
        if case.fixed and pair.ours.config.positions == "learned":
            yield None
            continue
        mistake.model(pair.ours.model)
        yield pair.double() if case.exact else pair


@pytest.mark.parametrize("model", MISTAKES)
def test_every_mistake_is_seen_and_nothing_where_there_is_none(model: str, tmp_path: Path) -> None:
    none, *wrong = planted(model, [Mistake(), *MISTAKES[model]], tmp_path)
    assert none is not None
    same_values(none)
    for pair in filter(None, wrong):
        with pytest.raises(AssertionError, match="differs by"):
            same_values(pair)


def test_every_family_has_a_planted_mistake() -> None:
    planted_in = {FAMILIES[MODELS[model].config.model_type].types for model in MISTAKES}
    assert planted_in == {family.types for family in FAMILIES.values()}
