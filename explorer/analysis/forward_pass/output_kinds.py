"""The kinds of stage of a model's head, up to the probabilities."""

from __future__ import annotations

from torch import Tensor

from explorer.analysis.forward_pass.equation import (
    Equation,
    capped,
    dot_product,
    looked_up,
    number_latex,
    under,
)
from explorer.analysis.forward_pass.kind_formulas import (
    ACTIVATIONS,
    Softmax,
    activated,
    normed,
    projected,
    symbol_read,
)
from explorer.analysis.forward_pass.stage_kind import (
    Inputs,
    Kind,
    Stage,
    in_precision,
    run,
)
from explorer.text.number_format import three
from models import TransformerConfig
from models.masking import keep_of


class Pooling(Kind):
    title, shapes = "Pooling", (("batch", "d_model"),)

    def sentence(self, config: TransformerConfig) -> str:
        if config.pooling == "mean":
            return "The mean of the vectors of all tokens stands for the whole text."
        return (
            f"The vector of the {config.pooling} token stands for the whole text; the other "
            "tokens reach it through attention only."
        )

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        x = symbol_read(stage, config)
        if config.pooling == "mean":
            return rf"c = \frac{{1}}{{T}}\sum_t {x}_t"
        return rf"c = {x}_{{\text{{{config.pooling}}}}}"

    def compute(self, inputs: Inputs) -> Tensor:
        made: Tensor = inputs.head.pooling(inputs.whole()[None], self._kept(inputs))
        return made

    def equation(self, inputs: Inputs) -> Equation:
        config, x, kept = inputs.config, inputs.whole()[:, inputs.column], self._kept(inputs)
        places = [at for at in range(len(x)) if kept is None or kept[0, at]]
        if config.pooling == "mean":
            total, count = float(x[places].sum()), len(places)
            summed = under(number_latex(total, alone=True), rf"{count} \text{{ tokens, summed}}")
            return Equation(rf"\frac{{{summed}}}{{{count}}}", total / count)
        place = places[0 if config.pooling == "first" else -1]
        return looked_up(float(x[place]), rf"{symbol_read(inputs.stage, config)}_{{{place}}}")

    def _kept(self, inputs: Inputs) -> Tensor | None:
        """(1, t): which tokens are no padding; None where the model has no padding."""
        pad = inputs.config.pad_id
        return None if pad is None else keep_of(inputs.values.ids(inputs.stage.stack)[None], pad)


class ClassHidden(Kind):
    title, shapes = "Hidden layer", (("batch", "d_classifier"),)
    text = "The hidden layer of the classifier head."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        return "h = " + ACTIVATIONS[config.classifier_activation].replace("{x}", r"c\,W + b")

    def compute(self, inputs: Inputs) -> Tensor:
        made: Tensor = inputs.head.activation(run(inputs.head.hidden, inputs.read()))
        return made

    def equation(self, inputs: Inputs) -> Equation:
        x = run(inputs.head.hidden, inputs.read())[0, inputs.column]
        return activated(x, inputs.config.classifier_activation, inputs.head.activation)


class ClassLogits(Kind):
    title, shapes, recorded = "Logits", (("batch", "classes"),), True
    text = "One logit for each class."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        x = "c" if config.d_classifier is None else "h"
        return rf"\ell = {x}\,W" + (" + b" if config.classifier_bias else "")

    def compute(self, inputs: Inputs) -> Tensor:
        return run(inputs.head.out, inputs.read())

    def equation(self, inputs: Inputs) -> Equation:
        return projected(inputs, inputs.head.out, inputs.column)


class Transform(Kind):
    title = "Transform"
    text = "One more layer before the logits."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        x, name = symbol_read(stage, config), config.activation
        return rf"c = \mathrm{{Norm}}(f({x}\,W + b)), \quad f = \text{{{name}}}"

    def equation(self, inputs: Inputs) -> Equation | None:
        x = inputs.module.activation(run(inputs.module.proj, inputs.read()))
        return normed(x[0], inputs.module.norm, inputs.column)


class Logits(Kind):
    title, shapes, recorded = "Logits", (("batch", "tokens", "vocabulary"),), True
    text = "One logit for each token of the vocabulary."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        weight = r"E^\top" if config.tie_embeddings else "W"
        scale = "" if config.logit_scale == 1 else rf"{three(config.logit_scale)} \cdot "
        bias = " + b" if config.has_head_bias else ""
        made = rf"{scale}{symbol_read(stage, config)}\,{weight}{bias}"
        if config.logit_cap is None:
            return rf"\ell = {made}"
        cap = three(config.logit_cap)
        return rf"\ell = {cap} \tanh\left(\frac{{{made}}}{{{cap}}}\right)"

    def compute(self, inputs: Inputs) -> Tensor:
        """By the head of the model, without its transform, which is a stage of its own."""
        x = inputs.whole()[inputs.values.rows(inputs.stage.name)][inputs.rows]
        head = in_precision(inputs.head, x.dtype, inputs.columns, without=("transform",))
        words = inputs.values.model.last_stack.embedding.weight[inputs.columns].to(x.dtype)
        made: Tensor = head(x[None], words)[0]
        return made

    def equation(self, inputs: Inputs) -> Equation:
        head, column, values = inputs.head, inputs.column, inputs.values
        words = values.model.last_stack.embedding.weight if head.weight is None else head.weight
        place = values.rows(inputs.stage.name)[inputs.row]
        x = values[inputs.stage.reads[0]][place].double() * head.scale
        bias = None if head.bias is None else float(head.bias[column])
        symbols = symbol_read(inputs.stage, inputs.config), "w"
        found = dot_product(x, words[column], bias, symbols)
        if head.cap is None:
            return found
        return capped(Equation(number_latex(found.total, alone=True), found.total), head.cap)


class Probabilities(Softmax):
    title = "Probabilities"
    text = "The softmax of the logits: probabilities that sum to 1."
    latex = r"p_v = \frac{e^{\ell_v}}{\sum_{v'} e^{\ell_{v'}}}"

    def compute(self, inputs: Inputs) -> Tensor:
        return inputs.read().softmax(-1)
