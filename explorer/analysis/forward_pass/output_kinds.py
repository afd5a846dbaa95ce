"""Kinds of stages after the last block: the head of the model and its probabilities."""

from __future__ import annotations

from torch import Tensor

from explorer.analysis.forward_pass.equation import (
    Equation,
    capped,
    dot_product,
    looked_up,
    number,
    softmax,
    under,
)
from explorer.analysis.forward_pass.stage_kind import (
    STREAM,
    Cell,
    Inputs,
    Kind,
    Stage,
    in_precision,
    run,
)
from explorer.analysis.forward_pass.stream_kinds import (
    ACTIVATIONS,
    activated,
    normed,
    projected,
    symbol_read,
)
from explorer.text.number_format import three
from models import TransformerConfig
from models.masking import keep_of

POOLING_SENTENCES = {
    "first": "The vector of the first token stands for the whole text; the other tokens reach it "
    "through attention only.",
    "last": "The vector of the last token stands for the whole text; the other tokens reach it "
    "through attention only.",
    "mean": "The mean of the vectors of all tokens stands for the whole text.",
}


def _pooled_formula(stage: Stage, config: TransformerConfig) -> str:
    x = symbol_read(stage, config)
    return {
        "first": rf"c = {x}_{{\text{{first}}}}",
        "last": rf"c = {x}_{{\text{{last}}}}",
        "mean": rf"c = \frac{{1}}{{T}}\sum_t {x}_t",
    }[config.pooling]


def _kept(inputs: Inputs) -> Tensor | None:
    """(1, t): which tokens are no padding; None where there is none."""
    pad = inputs.values.config.pad_id
    return None if pad is None else keep_of(inputs.values.ids(inputs.stage.stack)[None], pad)


def _pooled(inputs: Inputs) -> Tensor:
    made: Tensor = inputs.head.pooling(inputs.whole()[None], _kept(inputs))
    return made


def _pooled_equation(cell: Cell) -> Equation:
    config, x = cell.values.config, cell.values[cell.stage.reads[0]][:, cell.column].double()
    kept = _kept(cell)
    places = [at for at in range(len(x)) if kept is None or kept[0, at]]
    if config.pooling == "mean":
        total, count = float(x[places].sum()), len(places)
        summed = under(number(total, alone=True), rf"{count} \text{{ tokens, summed}}")
        return Equation(rf"\frac{{{summed}}}{{{count}}}", total / count)
    place = places[0 if config.pooling == "first" else -1]
    symbol = symbol_read(cell.stage, config)
    return looked_up(float(x[place]), rf"{symbol}_{{{place}}}")


def _class_hidden_formula(stage: Stage, config: TransformerConfig) -> str:
    return "h = " + ACTIVATIONS[config.classifier_activation].replace("{x}", r"c\,W + b")


def _class_hidden(inputs: Inputs) -> Tensor:
    made: Tensor = inputs.head.activation(run(inputs.head.hidden, inputs.read()))
    return made


def _class_hidden_equation(cell: Cell) -> Equation:
    x = run(cell.head.hidden, cell.vector())[cell.column]
    return activated(float(x), cell.values.config.classifier_activation, cell.head.activation(x))


def _class_logits_formula(stage: Stage, config: TransformerConfig) -> str:
    x = "c" if config.d_classifier is None else "h"
    return rf"\ell = {x}\,W" + (" + b" if config.classifier_bias else "")


def _transform_formula(stage: Stage, config: TransformerConfig) -> str:
    x = symbol_read(stage, config)
    return rf"c = \mathrm{{Norm}}(f({x}\,W + b)), \quad f = \text{{{config.activation}}}"


def _transform_equation(cell: Cell) -> Equation | None:
    x = cell.module.activation(run(cell.module.proj, cell.vector()))
    return normed(x, cell.module.norm, cell.column)


def _logits_formula(stage: Stage, config: TransformerConfig) -> str:
    weight = r"E^\top" if config.tie_embeddings else "W"
    scale = "" if config.logit_scale == 1 else rf"{three(config.logit_scale)} \cdot "
    bias = " + b" if config.has_head_bias else ""
    made = rf"{scale}{symbol_read(stage, config)}\,{weight}{bias}"
    if config.logit_cap is None:
        return rf"\ell = {made}"
    cap = three(config.logit_cap)
    return rf"\ell = {cap} \tanh\left(\frac{{{made}}}{{{cap}}}\right)"


def _logits(inputs: Inputs) -> Tensor:
    """By the head of the model, without its transform, which is a stage of its own."""
    x = inputs.whole()[inputs.values.rows(inputs.stage.name)][inputs.rows]
    head = in_precision(inputs.head, x.dtype, inputs.columns, without=("transform",))
    words = inputs.values.model.last_stack.embedding.weight[inputs.columns].to(x.dtype)
    made: Tensor = head(x[None], words)[0]
    return made


def _logits_equation(cell: Cell) -> Equation:
    head, config = cell.head, cell.values.config
    words = cell.values.model.last_stack.embedding.weight if head.weight is None else head.weight
    place = cell.values.rows(cell.stage.name)[cell.row]
    x = cell.values[cell.stage.reads[0]][place].double() * head.scale
    bias = None if head.bias is None else float(head.bias[cell.column])
    found = dot_product(x, words[cell.column], bias, (symbol_read(cell.stage, config), "w"))
    if head.cap is None:
        return found
    return capped(Equation(number(found.total, alone=True), found.total), head.cap)


WORDS = (("batch", "tokens", "vocabulary"),)
OUTPUT_KINDS = {
    "transform": Kind(
        "Transform",
        STREAM,
        "One more layer before the vocabulary.",
        _transform_formula,
        lambda inputs: run(inputs.module, inputs.read()),
        _transform_equation,
    ),
    "pooled": Kind(
        "Pooling",
        (("batch", "d_model"),),
        lambda config: POOLING_SENTENCES[config.pooling],
        _pooled_formula,
        _pooled,
        _pooled_equation,
    ),
    "class hidden": Kind(
        "Hidden layer",
        (("batch", "d_classifier"),),
        "The hidden layer of the classifier head.",
        _class_hidden_formula,
        _class_hidden,
        _class_hidden_equation,
    ),
    "class logits": Kind(
        "Logits",
        (("batch", "classes"),),
        "One number for each class.",
        _class_logits_formula,
        lambda inputs: run(inputs.head.out, inputs.read()),
        lambda cell: projected(cell, cell.head.out, cell.column),
        recorded=True,
    ),
    "logits": Kind(
        "Logits",
        WORDS,
        "One number for each token of the vocabulary.",
        _logits_formula,
        _logits,
        _logits_equation,
        recorded=True,
    ),
    "probabilities": Kind(
        "Probabilities",
        WORDS,
        "The softmax of the logits: probabilities that sum to 1.",
        r"p_v = \frac{e^{\ell_v}}{\sum_{v'} e^{\ell_{v'}}}",
        lambda inputs: inputs.read().softmax(-1),
        lambda cell: softmax(cell.vector(), cell.column),
    ),
}
