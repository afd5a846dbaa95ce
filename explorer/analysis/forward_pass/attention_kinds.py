"""The kinds of stage inside an attention.

Shapes: q queries, k keys, d width of what is read; always of the head that is shown.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from explorer.analysis.forward_pass.equation import (
    Equation,
    added,
    capped,
    dot_product,
    looked_up,
    number_latex,
)
from explorer.analysis.forward_pass.kind_formulas import (
    Norm,
    Softmax,
    projected,
    rms_formula,
    symbol_read,
)
from explorer.analysis.forward_pass.stage_kind import (
    HEADS,
    SQUARE,
    Inputs,
    Kind,
    Stage,
    run,
)
from explorer.analysis.residual_writes import head_outs
from explorer.catalog.attention_parts import site
from explorer.text.number_format import three
from models import TransformerConfig
from models.attention import attention_scores, attention_weights
from models.position_biases import AlibiPositions


class Projection(Kind):
    """Queries, keys or values of the head that is shown."""

    text = "One projection for all heads, split into heads."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        letter, reads = stage.name.split(".")[-1][0].upper(), symbol_read(stage, config)
        bias = rf" + b_{letter}" if config.qkv_bias else ""
        heads = config.n_heads if letter == "Q" else config.kv_heads
        made = rf"{letter} = {reads}\,W_{letter}{bias}, \quad \text{{split into {heads} heads}}"
        is_stream = reads == "m" and not stage.reads[0].endswith(".final")
        return made + (r", \quad m = x \text{ of the encoder}" if is_stream else "")

    def compute(self, inputs: Inputs) -> Tensor:
        return run(inputs.module, inputs.read(), self._rows(inputs))

    def equation(self, inputs: Inputs) -> Equation:
        return projected(inputs, inputs.module, self._rows(inputs).start + inputs.column)

    def _rows(self, inputs: Inputs) -> slice:
        """The rows of the weight that belong to the head that is shown."""
        width = inputs.config.head_width
        head = inputs.values.head_of(len(inputs.module.weight) // width)
        return slice(head * width, (head + 1) * width)


class HeadNorm(Norm):
    """Of queries or keys: always by the root mean square, whatever the other norms are."""

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        x = stage.name.split(".")[-1][0]
        return rf"\hat {x} = {rms_formula(x, 'w', config)}"


class Rotation(Kind):
    text = "Pairs of dimensions are rotated by an angle that grows with the position."
    latex = (
        r"(a, b) \mapsto (a\cos\varphi - b\sin\varphi,\; a\sin\varphi + b\cos\varphi), "
        r"\quad \varphi = t\,\theta_i"
    )

    def compute(self, inputs: Inputs) -> Tensor:
        rotate = inputs.module.rotation(inputs.positions[inputs.rows])
        made: Tensor = rotate(inputs.read()[None, None])[0, 0]
        return made

    def equation(self, inputs: Inputs) -> Equation:
        """A pair is rotated by position × frequency; what is beyond the pairs stays as it is."""
        rotary, x, column = inputs.module, inputs.read()[0], inputs.column
        half = rotary.d_head // 2
        if column >= 2 * half:
            return Equation(number_latex(float(x[column]), alone=True), float(x[column]))
        if rotary.pairs == "halves":
            is_second, pair = divmod(column, half)
            first, second = pair, pair + half
        else:
            pair, is_second = divmod(column, 2)
            first, second = 2 * pair, 2 * pair + 1
        angle = inputs.positions[inputs.row] * rotary.frequencies()[pair]  # float32, as in the pass
        cosine, sine = float(angle.cos()), float(angle.sin())
        a, b, turn = float(x[first]), float(x[second]), number_latex(float(angle), alone=True)
        if is_second:
            latex = rf"{number_latex(a)} \sin {turn} + {number_latex(b)} \cos {turn}"
            total = a * sine + b * cosine
        else:
            latex = rf"{number_latex(a)} \cos {turn} - {number_latex(b)} \sin {turn}"
            total = a * cosine - b * sine
        stretch = 1.0 if rotary.scaling is None else rotary.scaling.attention_factor
        if stretch != 1:
            latex = rf"{number_latex(stretch)} \left({latex}\right)"
        return Equation(latex, stretch * total)


class DotProducts(Kind):
    title, shapes = "Dot products", SQUARE
    text = "The dot product of every query with every key."
    latex = r"q_i \cdot k_j = \sum_n q_{in}\,k_{jn}"

    def compute(self, inputs: Inputs) -> Tensor:
        q, k = inputs.read(), inputs.whole(1)
        return attention_scores(q[None, None], k[None, None], 1.0)[0, 0]

    def equation(self, inputs: Inputs) -> Equation:
        key = inputs.values[inputs.stage.reads[1]][inputs.column]
        return dot_product(inputs.read()[0], key, symbols=("q", "k"))


class Scores(Kind):
    title, shapes, recorded = "Scores", SQUARE, True

    def sentence(self, config: TransformerConfig) -> str:
        if config.scale != 1:
            capped = "" if config.attention_cap is None else " Large scores are capped."
            return f"Scaled, so that scores do not grow with the width of a head.{capped}"
        if config.attention_cap is None:
            return "This model does not scale: the dot products are the scores."
        return "This model does not scale; large dot products are capped."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        factor = "" if config.scale == 1 else rf"{three(config.scale)} \, "
        scaled = rf"{factor}q_i \cdot k_j"
        if self._by_root(config):
            scaled = rf"\frac{{q_i \cdot k_j}}{{\sqrt{{{config.head_width}}}}}"
        if config.attention_cap is None:
            return rf"s_{{ij}} = {scaled}"
        cap = three(config.attention_cap)
        return rf"s_{{ij}} = {cap} \tanh\left(\frac{{1}}{{{cap}}} \cdot {scaled}\right)"

    def compute(self, inputs: Inputs) -> Tensor:
        """From the queries and keys, by the function of the model that scales and caps them."""
        config, values = inputs.config, inputs.values
        q, k = (inputs.cast(values[name]) for name in values.stages[inputs.stage.reads[0]].reads)
        q, k = q[None, None, inputs.rows], k[None, None]
        return attention_scores(q, k, config.scale, config.attention_cap)[0, 0]

    def equation(self, inputs: Inputs) -> Equation:
        (product,), config = inputs.numbers(), inputs.config
        latex = rf"{number_latex(config.scale, alone=True)} \cdot {number_latex(product)}"
        if self._by_root(config):
            latex = rf"\frac{{{number_latex(product, alone=True)}}}{{\sqrt{{{config.head_width}}}}}"
        return capped(Equation(latex, product * config.scale), config.attention_cap)

    def _by_root(self, config: TransformerConfig) -> bool:
        return math.isclose(config.scale, config.head_width**-0.5)


class PositionBias(Kind):
    title, shapes, recorded = "Position bias", SQUARE, True
    text = "Added to the score; it depends on the distance between query and key."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        if config.positions == "alibi":
            return r"b_{ij} = -m_h\,|i - j|"
        return r"b_{ij} = B_h[\mathrm{bucket}(j - i)]"

    def compute(self, inputs: Inputs) -> Tensor:
        here, head = inputs.positions, inputs.values.head
        return inputs.cast(inputs.module.bias(here[inputs.rows], here, slice(head, head + 1))[0, 0])

    def equation(self, inputs: Inputs) -> Equation:
        """What ALiBi subtracts by distance, or the number of the bucket of the distance."""
        module, head = inputs.module, inputs.values.head
        offset = inputs.positions[inputs.column] - inputs.positions[inputs.row]
        if isinstance(module, AlibiPositions):
            slope, apart = float(module.slopes()[head]), abs(int(offset))
            return Equation(rf"-{number_latex(slope)} \cdot {apart}", -slope * apart)
        bucket = int(module.buckets(offset))
        return looked_up(float(module.table.weight[bucket, head]), rf"B_{{{bucket},\,{head}}}")


class Masked(Kind):
    title, shapes = "Masked scores", SQUARE
    text = "The scores of masked keys are set to −∞."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        summed = "s_{ij} + b_{ij}" if len(stage.reads) > 1 else "s_{ij}"
        cases = rf"{summed} & i \text{{ may attend to }} j \\ -\infty & \text{{else}}"
        return rf"s_{{ij}} \leftarrow \begin{{cases}} {cases} \end{{cases}}"

    def compute(self, inputs: Inputs) -> Tensor:
        scores = inputs.read()
        if len(inputs.stage.reads) > 1:
            scores = scores + inputs.read(1).to(scores.dtype)
        return scores.masked_fill(~inputs.values.mask(inputs.stage)[inputs.rows], -torch.inf)

    def equation(self, inputs: Inputs) -> Equation:
        if not inputs.values.mask(inputs.stage)[inputs.row, inputs.column]:
            return Equation(r"-\infty \quad \text{this key is masked}", -math.inf)
        score, *bias = inputs.numbers()
        if bias:
            return added([score, *bias])
        return looked_up(score, rf"s_{{{inputs.row}\,{inputs.column}}} \text{{, not masked}}")


class AttentionWeights(Softmax):
    title, recorded = "Attention weights", True
    text = (
        "The softmax of each row over its visible keys: its weights sum to 1, or are all 0 where "
        "every key is masked."
    )
    latex = r"a_{ij} = \frac{e^{s_{ij}}}{\sum_{j'} e^{s_{ij'}}}"

    def compute(self, inputs: Inputs) -> Tensor:
        scores = inputs.read()[None, None]
        return attention_weights(scores, ~scores.isneginf())[0, 0]


class HeadOut(Kind):
    title, shapes, recorded = "Head outputs", HEADS, True
    text = "The mean of the values, weighted by the attention weights of each query."
    latex = r"o_i = \sum_j a_{ij}\,v_j"

    def compute(self, inputs: Inputs) -> Tensor:
        return inputs.read() @ inputs.whole(1)

    def equation(self, inputs: Inputs) -> Equation:
        values = inputs.values[inputs.stage.reads[1]][:, inputs.column]
        return dot_product(inputs.read()[0], values, symbols=("a", "v"))


class Concat(Kind):
    title = "Concatenated heads"
    shapes = *HEADS, ("batch", "tokens", "heads", "d_head"), ("batch", "tokens", "heads·d_head")
    text = "The outputs of all heads, side by side."
    latex = r"H = [\,o^{(0)},\; o^{(1)},\; \dots\,]"

    def compute(self, inputs: Inputs) -> Tensor:
        """Every head's output from its own weights and values, for these rows alone."""
        stage, values = inputs.stage, inputs.values
        places = torch.arange(len(values[stage.reads[0]]))[inputs.rows]
        at = site(stage.part, stage.layer or 0)
        return torch.cat(list(head_outs(values.forward, at, places, inputs.dtype)), -1)

    def equation(self, inputs: Inputs) -> Equation:
        head, at = divmod(inputs.column, inputs.config.head_width)
        found = float(inputs.values[inputs.stage.name][inputs.row, inputs.column])
        return looked_up(found, rf"o^{{({head})}}_{{{at}}}")
