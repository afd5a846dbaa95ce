"""Every kind of stage, in the order of a pass; `KINDS` is the table of them.

Shapes: t tokens, q queries, k keys, d width of what is read; inside an attention always of the
head that is shown.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.forward_pass.equation import (
    Equation,
    added,
    capped,
    dot_product,
    looked_up,
    number_latex,
    softmax,
    under,
)
from explorer.analysis.forward_pass.stage_kind import (
    HEADS,
    HIDDEN,
    SQUARE,
    STREAM,
    TOKENS,
    Inputs,
    Kind,
    Shapes,
    Stage,
    in_precision,
    run,
)
from explorer.analysis.residual_writes import head_outs
from explorer.catalog.attention_parts import site
from explorer.text.number_format import three
from models import TransformerConfig
from models.attention import attention_scores, attention_weights
from models.masking import keep_of
from models.normalization import LayerNorm, RMSNorm
from models.positional import AlibiPositions, PositionalEncoding, sinusoids

ACTIVATIONS = {
    "relu": r"\max(0, {x})",
    "silu": r"\frac{{x}}{1 + e^{-{x}}}",
    "gelu": r"{x} \cdot \Phi({x})",
    "gelu-tanh": r"\tfrac{1}{2}\,{x}\,\left(1 + \tanh\!\left(\sqrt{2/\pi}\,({x} + 0.044715\,{x}^3)"
    r"\right)\right)",
    "tanh": r"\tanh({x})",
}
SYMBOLS = {
    "norm": "y",
    "final": "y",
    "concat": "H",
    "hidden": "h",
    "pooled": "c",
    "transform": "c",
    "out_norm": "z",
}


def symbol_of(name: str, config: TransformerConfig) -> str:
    """The symbol of a stage in its own formula and in those of the stages that read it."""
    if name == "encoder.final" and config.kind == "encoder-decoder":
        return "m"
    return SYMBOLS.get(name.split(".")[-1], "x")


def symbol_read(stage: Stage, config: TransformerConfig) -> str:
    """The symbol of what a stage reads; cross-attention reads its keys from the memory m."""
    if stage.branch == "cross_attn" and not stage.reads[0].startswith(f"{stage.stack}."):
        return "m"
    return symbol_of(stage.reads[0], config)


def rms_formula(x: str, width: str, config: TransformerConfig) -> str:
    size = rf"\sqrt{{\tfrac{{1}}{{{width}}}\sum {x}_i^2 + {epsilon(config)}}}"
    return rf"\gamma \odot \frac{{{x}}}{{{size}}}"


def epsilon(config: TransformerConfig) -> str:
    eps = f"{config.norm_eps:.0e}".replace("e-0", "e-")
    is_power = eps.startswith("1e") and float(eps) == config.norm_eps
    return rf"10^{{{eps.split('e')[1]}}}" if is_power else three(config.norm_eps)


def normed(x: Tensor, module: Any, column: int) -> Equation | None:
    """One number of the norm of x (d); None where the module is no norm."""
    if not isinstance(module, LayerNorm | RMSNorm):
        return None
    is_layer = isinstance(module, LayerNorm)
    mean = float(x.mean()) if is_layer else 0.0
    size = math.sqrt(float((x - mean).square().mean()) + module.eps)
    gain, one = float(module.weight[column]), float(x[column])
    above = number_latex(one, alone=True) + (f" - {number_latex(mean)}" if is_layer else "")
    latex = rf"{number_latex(gain)} \cdot \frac{{{above}}}{{{number_latex(size)}}}"
    total = gain * (one - mean) / size
    if not isinstance(module, LayerNorm):
        return Equation(latex, total)
    bias = float(module.bias[column])
    return Equation(f"{latex} + {number_latex(bias)}", total + bias)


def projected(inputs: Inputs, module: Any, row: int) -> Equation:
    """One number of a linear map: what is read times one row of the weight."""
    bias = None if module.bias is None else float(module.bias[row])
    symbols = symbol_read(inputs.stage, inputs.config), "w"
    return dot_product(inputs.read()[0], module.weight[row], bias, symbols)


def activated(x: Tensor, name: str, activation: Any) -> Equation:
    inside = number_latex(float(x), alone=True)
    latex = rf"\max(0, {inside})" if name == "relu" else rf"\text{{{name}}}({inside})"
    return Equation(latex, float(activation(x)))


# ---- embedding and residual stream -------------------------------------------------------


class TokenIds(Kind):
    title, shapes = "Tokens", TOKENS
    text = "The model reads one integer per token, its ID in the vocabulary."
    latex = r"\mathrm{id}_t = \text{ID of token } t"

    def compute(self, inputs: Inputs) -> Tensor:
        return inputs.values.ids(inputs.stage.stack)[inputs.rows]


class LookUp(Kind):
    """Something that is added to make the residual stream."""

    shapes, recorded = (*TOKENS, *STREAM), True


class Embedding(LookUp):
    title = "Embedding"
    text = "Each token ID selects its row of the embedding table."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        scaled = rf"\sqrt{{{config.d_model}}}\; " if config.scale_embedding else ""
        is_all = config.positions not in ("sinusoidal", "learned") and not config.n_segments
        return rf"{'x' if is_all else 'e'}_t = {scaled}E[\mathrm{{id}}_t]"

    def compute(self, inputs: Inputs) -> Tensor:
        stack = inputs.stage.stack
        ids = inputs.values.ids(stack)[inputs.rows]
        scale = getattr(inputs.values.model, stack).embedding_scale
        return inputs.cast(inputs.module.weight[ids]) * scale

    def equation(self, inputs: Inputs) -> Equation:
        token, width = int(inputs.read()), inputs.config.d_model
        found = float(inputs.module.weight[token, inputs.column])
        place = rf"E_{{{token},\,{inputs.column}}}"
        if not inputs.config.scale_embedding:
            return looked_up(found, place)
        latex = rf"\sqrt{{{width}}} \cdot {under(number_latex(found), place)}"
        return Equation(latex, math.sqrt(width) * found)


class PositionVectors(LookUp):
    title = "Positions"
    text = "One vector per position, to be added to the embedding."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        if config.positions == "learned":
            offset = f" + {config.position_offset}" if config.position_offset else ""
            return rf"p_t = P[t{offset}]"
        angle = rf"\frac{{t}}{{10000^{{2i/{config.d_model}}}}}"
        if config.pairs == "halves":
            return rf"p_t = \left[\sin{angle},\; \cos{angle}\right] \text{{, all sines first}}"
        return rf"p_{{t,2i}} = \sin{angle}, \quad p_{{t,2i+1}} = \cos{angle}"

    def compute(self, inputs: Inputs) -> Tensor:
        module, here = inputs.module, inputs.positions[inputs.rows]
        if isinstance(module, PositionalEncoding):  # whose table is rounded to float32
            return inputs.cast(sinusoids(here, module.pe.shape[-1], module.pairs))
        return inputs.cast(module.embed(here))

    def equation(self, inputs: Inputs) -> Equation:
        module, place = inputs.module, int(inputs.positions[inputs.row])
        column = inputs.column
        if not isinstance(module, PositionalEncoding):
            row = place + module.offset
            return looked_up(float(module.table.weight[row, column]), rf"P_{{{row},\,{column}}}")
        width = module.pe.shape[-1]
        if module.pairs == "halves":
            second, pair = divmod(column, (width + 1) // 2)
        else:
            pair, second = divmod(column, 2)
        name, wave = ("cos", math.cos) if second else ("sin", math.sin)
        latex = rf"\{name}\frac{{{place}}}{{10000^{{{2 * pair}/{width}}}}}"
        return Equation(latex, wave(place / 10_000 ** (2 * pair / width)))


class Segments(LookUp):
    title = "Segments"
    text = "One vector for the first text and one for the second, to be added to the embedding."
    latex = r"s_t = S[\text{segment of } t]"

    def compute(self, inputs: Inputs) -> Tensor:
        segments = inputs.values.segments(inputs.stage.stack)[inputs.rows]
        return inputs.cast(inputs.module.weight[segments])

    def equation(self, inputs: Inputs) -> Equation:
        row, column = int(inputs.values.segments(inputs.stage.stack)[inputs.row]), inputs.column
        return looked_up(float(inputs.module.weight[row, column]), rf"S_{{{row},\,{column}}}")


class Addition(Kind):
    """The sum of what it reads."""

    title, recorded = "Add", True
    text = "The output of the sub-layer is added to the residual stream."
    latex = r"x \leftarrow x + z"

    def compute(self, inputs: Inputs) -> Tensor:
        return torch.stack([inputs.read(at) for at in range(len(inputs.stage.reads))]).sum(0)

    def equation(self, inputs: Inputs) -> Equation:
        return added(inputs.numbers())


class EmbeddingSum(Addition):
    title, recorded = "Sum", False
    text = "The sum starts the residual stream."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        symbols = {"embed": "e_t", "pos_embed": "p_t", "segment_embed": "s_t"}
        return "x_t = " + " + ".join(symbols[name.split(".")[-1]] for name in stage.reads)


class Norm(Kind):
    def __init__(self, title: str, text: str, recorded: bool = False) -> None:
        self.title, self.text, self.recorded = title, text, recorded

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        made = symbol_of(stage.name, config)
        x = "z" if made == "z" else "x"
        start = rf"{made} \leftarrow" if made == x else f"{made} ="
        if config.norm == "rms":
            return f"{start} {rms_formula(x, 'd', config)}"
        size = rf"\sqrt{{\sigma^2 + {epsilon(config)}}}"
        return rf"{start} \gamma \odot \frac{{{x} - \mu}}{{{size}}} + \beta"

    def equation(self, inputs: Inputs) -> Equation | None:
        return normed(inputs.read()[0], inputs.module, inputs.column)


# ---- attention ---------------------------------------------------------------------------


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


class Softmax(Kind):
    shapes = SQUARE

    def equation(self, inputs: Inputs) -> Equation | None:
        return softmax(inputs.read()[0], inputs.column)


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


# ---- linear maps and feed-forward --------------------------------------------------------


class Linear(Kind):
    """`symbols` are those of output, weight and bias, `has_bias` the config's word for the bias."""

    text = "A linear map, the same for every token."

    def __init__(self, title: str, shapes: Shapes, symbols: str, has_bias: str) -> None:
        self.title, self.shapes, self.recorded = title, shapes, shapes == STREAM
        self.symbols, self.has_bias = symbols.split(), has_bias

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        made, weight, bias = self.symbols
        end = f" + {bias}" if getattr(config, self.has_bias) else ""
        return rf"{made} = {symbol_read(stage, config)}\,{weight}{end}"

    def equation(self, inputs: Inputs) -> Equation:
        return projected(inputs, inputs.module, inputs.column)


class Activation(Kind):
    title, shapes, recorded = "Activation", HIDDEN, True
    text = "The activation function is applied to each number."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        made = ACTIVATIONS[config.activation].replace("{x}", "g" if config.gated else "u")
        return f"h = {made}" + (r"\;\odot\; u" if config.gated else "")

    def compute(self, inputs: Inputs) -> Tensor:
        made: Tensor = inputs.branch.activation(inputs.read())
        return made * inputs.read(1) if len(inputs.stage.reads) > 1 else made

    def equation(self, inputs: Inputs) -> Equation:
        _, *gated = inputs.numbers()
        x = inputs.read()[0, inputs.column]
        made = activated(x, inputs.config.activation, inputs.branch.activation)
        if not gated:
            return made
        return Equation(rf"{made.latex} \cdot {number_latex(gated[0])}", made.total * gated[0])


# ---- heads of models ---------------------------------------------------------------------


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


KINDS: dict[str, Kind] = {
    "tokens": TokenIds(),
    "embedding": Embedding(),
    "positions": PositionVectors(),
    "segments": Segments(),
    "sum": EmbeddingSum(),
    "norm": Norm("Norm", "Read by the sub-layer; the residual stream itself is unchanged."),
    "output norm": Norm("Output norm", "The output is normalized before it is added."),
    "stream norm": Norm("Norm", "The residual stream itself is normalized.", recorded=True),
    "final norm": Norm("Final norm", "The last norm of the residual stream.", recorded=True),
    "projected": Projection(),
    "head norm": HeadNorm("Norm", "The vectors of every head are normalized."),
    "rotated": Rotation(),
    "products": DotProducts(),
    "scores": Scores(),
    "bias": PositionBias(),
    "masked": Masked(),
    "weights": AttentionWeights(),
    "head out": HeadOut(),
    "concat": Concat(),
    "output projection": Linear("Output projection", STREAM, "z W_O b_O", "has_out_bias"),
    "gate": Linear("Gate projection", HIDDEN, "g W_g b_g", "has_mlp_bias"),
    "up": Linear("Up projection", HIDDEN, "u W_1 b_1", "has_mlp_bias"),
    "activation": Activation(),
    "down": Linear("Down projection", STREAM, "z W_2 b_2", "has_mlp_bias"),
    "add": Addition(),
    "pooled": Pooling(),
    "class hidden": ClassHidden(),
    "class logits": ClassLogits(),
    "transform": Transform(),
    "logits": Logits(),
    "probabilities": Probabilities(),
}
