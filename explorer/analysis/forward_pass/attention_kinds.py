"""Kinds of stages inside one attention.

Shapes: q queries, k keys, d width of one head; always of the head that is shown.
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
    number,
    softmax,
)
from explorer.analysis.forward_pass.stage_kind import (
    HEADS,
    SQUARE,
    Cell,
    Inputs,
    Kind,
    Stage,
    run,
)
from explorer.analysis.forward_pass.stream_kinds import (
    epsilon,
    norm_kind,
    projected,
    symbol_read,
)
from explorer.analysis.residual_writes import head_outs
from explorer.catalog.attention_parts import site
from explorer.text.number_format import three
from models import TransformerConfig
from models.attention import attention_scores, attention_weights
from models.positional import AlibiPositions


def _projected_formula(stage: Stage, config: TransformerConfig) -> str:
    letter = stage.name.split(".")[-1][0].upper()
    reads = symbol_read(stage, config)
    bias = rf" + b_{letter}" if config.qkv_bias else ""
    heads = config.n_heads if letter == "Q" else config.kv_heads
    made = rf"{letter} = {reads}\,W_{letter}{bias}, \quad \text{{split into {heads} heads}}"
    is_stream = reads == "m" and not stage.reads[0].endswith(".final")
    return made + (r", \quad m = x \text{ of the encoder}" if is_stream else "")


def _head_norm_formula(stage: Stage, config: TransformerConfig) -> str:
    """Always by the root mean square, whatever the other norms are."""
    x = stage.name.split(".")[-1][0]
    size = rf"\sqrt{{\tfrac{{1}}{{w}}\sum {x}_i^2 + {epsilon(config)}}}"
    return rf"\hat {x} = \gamma \odot \frac{{{x}}}{{{size}}}"


def _rotated(inputs: Inputs) -> Tensor:
    rotate = inputs.module.rotation(inputs.positions[inputs.rows])
    made: Tensor = rotate(inputs.read()[None, None])[0, 0]
    return made


def _rotated_equation(cell: Cell) -> Equation:
    """A pair is rotated by position × frequency; what is beyond the pairs stays as it is."""
    rotary, x, column = cell.module, cell.vector(), cell.column
    width = rotary.d_head
    if column >= width:
        return Equation(number(float(x[column]), alone=True), float(x[column]))
    if rotary.pairs == "halves":
        is_second, pair = divmod(column, width // 2)
        first, second = pair, pair + width // 2
    else:
        pair, is_second = divmod(column, 2)
        first, second = 2 * pair, 2 * pair + 1
    angle = cell.positions[cell.row] * rotary.frequencies()[pair]  # in float32, as the model has it
    cosine, sine = float(angle.cos()), float(angle.sin())
    a, b, turn = float(x[first]), float(x[second]), number(float(angle), alone=True)
    if is_second:
        latex = rf"{number(a)} \sin {turn} + {number(b)} \cos {turn}"
        total = a * sine + b * cosine
    else:
        latex = rf"{number(a)} \cos {turn} - {number(b)} \sin {turn}"
        total = a * cosine - b * sine
    stretch = 1.0 if rotary.scaling is None else rotary.scaling.attention_factor
    if stretch != 1:
        latex = rf"{number(stretch)} \left({latex}\right)"
    return Equation(latex, stretch * total)


def _scores_sentence(config: TransformerConfig) -> str:
    if config.scale != 1:
        return "Scaled, so that the scores of wide heads are no larger."
    if config.attention_cap is None:
        return "This model does not scale: the dot products are the scores."
    return "This model does not scale; large dot products are capped."


def _scores_formula(stage: Stage, config: TransformerConfig) -> str:
    width = config.head_width
    is_root = math.isclose(config.scale, width**-0.5)
    factor = "" if config.scale == 1 else rf"{three(config.scale)} \, "
    product = r"q_i \cdot k_j"
    scaled = rf"\frac{{{product}}}{{\sqrt{{{width}}}}}" if is_root else f"{factor}{product}"
    if config.attention_cap is None:
        return rf"s_{{ij}} = {scaled}"
    cap = three(config.attention_cap)
    return rf"s_{{ij}} = {cap} \tanh\left(\frac{{1}}{{{cap}}} \cdot {scaled}\right)"


def _products(inputs: Inputs) -> Tensor:
    q, k = inputs.read(), inputs.whole(1)
    return attention_scores(q[None, None], k[None, None], 1.0)[0, 0]


def _scores(inputs: Inputs) -> Tensor:
    """From the queries and keys, by the function of the model that scales and caps them."""
    config, stages = inputs.values.config, inputs.values.stages
    q, k = (inputs.cast(inputs.values[name]) for name in stages[inputs.stage.reads[0]].reads)
    q = q[inputs.rows]
    return attention_scores(q[None, None], k[None, None], config.scale, config.attention_cap)[0, 0]


def _scores_equation(cell: Cell) -> Equation:
    (product,), config = cell.numbers(), cell.values.config
    latex = rf"{number(config.scale, alone=True)} \cdot {number(product)}"
    if math.isclose(config.scale, config.head_width**-0.5):
        latex = rf"\frac{{{number(product, alone=True)}}}{{\sqrt{{{config.head_width}}}}}"
    return capped(Equation(latex, product * config.scale), config.attention_cap)


def _bias_formula(stage: Stage, config: TransformerConfig) -> str:
    if config.positions == "alibi":
        return r"b_{ij} = -m_h\,|i - j|"
    return r"b_{ij} = B_h[\mathrm{bucket}(j - i)]"


def _bias(inputs: Inputs) -> Tensor:
    here, head = inputs.positions, inputs.values.head
    made: Tensor = inputs.module.bias(here[inputs.rows], here, slice(head, head + 1))
    return inputs.cast(made[0, 0])


def _bias_equation(cell: Cell) -> Equation:
    """What ALiBi subtracts by distance, or the table's number for the bucket of the distance."""
    module, head = cell.module, cell.values.head
    offset = cell.positions[cell.column] - cell.positions[cell.row]
    if isinstance(module, AlibiPositions):
        slope, apart = float(module.slopes()[head]), abs(int(offset))
        return Equation(rf"-{number(slope)} \cdot {apart}", -slope * apart)
    bucket = int(module.buckets(offset))
    return looked_up(float(module.table.weight[bucket, head]), rf"B_{{{bucket},\,{head}}}")


def _masked_formula(stage: Stage, config: TransformerConfig) -> str:
    summed = "s_{ij} + b_{ij}" if len(stage.reads) > 1 else "s_{ij}"
    cases = rf"{summed} & i \text{{ may attend to }} j \\ -\infty & \text{{else}}"
    return rf"s_{{ij}} \leftarrow \begin{{cases}} {cases} \end{{cases}}"


def _masked(inputs: Inputs) -> Tensor:
    scores = inputs.read()
    if len(inputs.stage.reads) > 1:
        scores = scores + inputs.read(1).to(scores.dtype)
    return scores.masked_fill(~inputs.values.mask(inputs.stage)[inputs.rows], -torch.inf)


def _masked_equation(cell: Cell) -> Equation:
    if not cell.values.mask(cell.stage)[cell.row, cell.column]:
        return Equation(r"-\infty \quad \text{this key is masked}", -math.inf)
    score, *bias = cell.numbers()
    if bias:
        return added([score, *bias])
    return looked_up(score, rf"s_{{{cell.row}\,{cell.column}}} \text{{, not masked}}")


def _weights(inputs: Inputs) -> Tensor:
    scores = inputs.read()[None, None]
    return attention_weights(scores, ~scores.isneginf())[0, 0]


def _products_equation(cell: Cell) -> Equation:
    key = cell.values[cell.stage.reads[1]][cell.column]
    return dot_product(cell.vector(), key, symbols=("q", "k"))


def _head_out_equation(cell: Cell) -> Equation:
    values = cell.values[cell.stage.reads[1]][:, cell.column]
    return dot_product(cell.vector(), values, symbols=("a", "v"))


def _all_heads(inputs: Inputs) -> Tensor:
    """Every head's output from its own weights and values, for these rows alone."""
    stage = inputs.stage
    places = torch.arange(len(inputs.values[stage.reads[0]]))[inputs.rows]
    at = site(stage.part, stage.layer or 0)
    return torch.cat(list(head_outs(inputs.values.forward, at, places, inputs.dtype)), -1)


def _concat_equation(cell: Cell) -> Equation:
    head, at = divmod(cell.column, cell.values.config.head_width)
    found = float(cell.values[cell.stage.name][cell.row, cell.column])
    return looked_up(found, rf"o^{{({head})}}_{{{at}}}")


JOINED = (*HEADS, ("batch", "tokens", "heads", "d_head"), ("batch", "tokens", "heads·d_head"))
ATTENTION_KINDS = {
    "projected": Kind(
        "Projection",
        HEADS,
        "One projection for all heads, split into heads.",
        _projected_formula,
        lambda inputs: run(inputs.module, inputs.read(), inputs.head_rows),
        lambda cell: projected(cell, cell.module, cell.head_rows.start + cell.column),
    ),
    "head norm": norm_kind("Norm", "The vectors of every head are normed.", _head_norm_formula),
    "rotated": Kind(
        "Rotation",
        HEADS,
        "Pairs of dimensions are rotated by an angle that grows with the position.",
        r"(a, b) \mapsto (a\cos\varphi - b\sin\varphi,\; a\sin\varphi + b\cos\varphi), "
        r"\quad \varphi = t\,\theta_i",
        _rotated,
        _rotated_equation,
    ),
    "products": Kind(
        "Dot products",
        SQUARE,
        "The dot product of every query with every key.",
        r"q_i \cdot k_j = \sum_n q_{in}\,k_{jn}",
        _products,
        _products_equation,
    ),
    "scores": Kind(
        "Scores",
        SQUARE,
        _scores_sentence,
        _scores_formula,
        _scores,
        _scores_equation,
        recorded=True,
    ),
    "bias": Kind(
        "Position bias",
        SQUARE,
        "Added to the score, by the distance of query and key.",
        _bias_formula,
        _bias,
        _bias_equation,
        recorded=True,
    ),
    "masked": Kind(
        "Masked scores",
        SQUARE,
        "The scores of masked keys are set to −∞.",
        _masked_formula,
        _masked,
        _masked_equation,
    ),
    "weights": Kind(
        "Attention weights",
        SQUARE,
        "The softmax of each row: its weights sum to 1.",
        r"a_{ij} = \frac{e^{s_{ij}}}{\sum_{j'} e^{s_{ij'}}}",
        _weights,
        lambda cell: softmax(cell.vector(), cell.column),
        recorded=True,
    ),
    "head out": Kind(
        "Head outputs",
        HEADS,
        "The mean of the values, weighted by the attention weights of each query.",
        r"o_i = \sum_j a_{ij}\,v_j",
        lambda inputs: inputs.read() @ inputs.whole(1),
        _head_out_equation,
        recorded=True,
    ),
    "concat": Kind(
        "Concatenated heads",
        JOINED,
        "The outputs of all heads, side by side.",
        r"H = [\,o^{(0)},\; o^{(1)},\; \dots\,]",
        _all_heads,
        _concat_equation,
    ),
}
