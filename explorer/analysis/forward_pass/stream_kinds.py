"""Kinds of stages on the residual stream and in the feed-forward layer.

Shapes: t tokens, d width of what is read.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.forward_pass.equation import (
    Equation,
    added,
    dot_product,
    looked_up,
    number,
    under,
)
from explorer.analysis.forward_pass.stage_kind import (
    HIDDEN,
    STREAM,
    TOKENS,
    Cell,
    Inputs,
    Kind,
    Shapes,
    Stage,
    run,
)
from explorer.text.number_format import three
from models import TransformerConfig
from models.normalization import LayerNorm, RMSNorm
from models.positional import PositionalEncoding, sinusoids

ACTIVATIONS = {
    "relu": r"\max(0, {x})",
    "silu": r"\frac{{x}}{1 + e^{-{x}}}",
    "gelu": r"{x} \cdot \Phi({x})",
    "gelu-tanh": r"\tfrac{1}{2}\,{x}\,\left(1 + \tanh\!\left(\sqrt{2/\pi}\,({x} + 0.044715\,{x}^3)"
    r"\right)\right)",
    "tanh": r"\tanh({x})",
}


def symbol_of(name: str, config: TransformerConfig) -> str:
    """The symbol of a stage in its own formula and in those of the stages that read it."""
    if name == "encoder.final" and config.kind == "encoder-decoder":
        return "m"
    tail = name.split(".")[-1]
    if name.endswith(("_attn.norm", "mlp.norm")) or tail == "final":
        return "y"
    named = {"concat": "H", "hidden": "h", "pooled": "c", "transform": "c", "out_norm": "z"}
    return named.get(tail, "x")


def symbol_read(stage: Stage, config: TransformerConfig) -> str:
    """The symbol of what a stage reads; cross-attention reads its keys from the memory m."""
    if stage.branch == "cross_attn" and not stage.reads[0].startswith(f"{stage.stack}."):
        return "m"
    return symbol_of(stage.reads[0], config)


def epsilon(config: TransformerConfig) -> str:
    eps = f"{config.norm_eps:.0e}".replace("e-0", "e-")
    is_power = eps.startswith("1e") and float(eps) == config.norm_eps
    return rf"10^{{{eps.split('e')[1]}}}" if is_power else three(config.norm_eps)


def activated(x: float, name: str, result: Tensor) -> Equation:
    inside = number(x, alone=True)
    latex = rf"\max(0, {inside})" if name == "relu" else rf"\text{{{name}}}({inside})"
    return Equation(latex, float(result))


def normed(x: Tensor, module: Any, column: int) -> Equation | None:
    """One number of a norm of x (d); None for what is no norm."""
    if not isinstance(module, LayerNorm | RMSNorm):
        return None
    is_layer = isinstance(module, LayerNorm)
    mean = float(x.mean()) if is_layer else 0.0
    size = math.sqrt(float((x - mean).square().mean()) + module.eps)
    gain, one = float(module.weight[column]), float(x[column])
    above = number(one, alone=True) + (f" - {number(mean)}" if is_layer else "")
    latex = rf"{number(gain)} \cdot \frac{{{above}}}{{{number(size)}}}"
    total = gain * (one - mean) / size
    if not isinstance(module, LayerNorm):
        return Equation(latex, total)
    bias = float(module.bias[column])
    return Equation(f"{latex} + {number(bias)}", total + bias)


# ---- embedding ---------------------------------------------------------------------------


def _embedding_formula(stage: Stage, config: TransformerConfig) -> str:
    scaled = rf"\sqrt{{{config.d_model}}}\; " if config.scale_embedding else ""
    begins = config.positions not in ("sinusoidal", "learned") and not config.n_segments
    return rf"{'x' if begins else 'e'}_t = {scaled}E[\mathrm{{id}}_t]"


def _embedding(inputs: Inputs) -> Tensor:
    stack = inputs.stage.stack
    scale = getattr(inputs.values.model, stack).embedding_scale
    ids = inputs.values.ids(stack)[inputs.rows]
    return inputs.cast(inputs.module.weight[ids]) * scale


def _embedding_equation(cell: Cell) -> Equation:
    config, token = cell.values.config, int(cell.vector())
    found = float(cell.module.weight[token, cell.column])
    place = rf"E_{{{token},\,{cell.column}}}"
    if not config.scale_embedding:
        return looked_up(found, place)
    latex = rf"\sqrt{{{config.d_model}}} \cdot {under(number(found), place)}"
    return Equation(latex, math.sqrt(config.d_model) * found)


def _positions_formula(stage: Stage, config: TransformerConfig) -> str:
    if config.positions == "learned":
        offset = f" + {config.position_offset}" if config.position_offset else ""
        return rf"p_t = P[t{offset}]"
    d = config.d_model
    angle = rf"\frac{{t}}{{10000^{{2i/{d}}}}}"
    if config.pairs == "halves":
        return rf"p_t = \left[\sin{angle},\; \cos{angle}\right] \text{{, all sines first}}"
    return rf"p_{{t,2i}} = \sin{angle}, \quad p_{{t,2i+1}} = \cos{angle}"


def _positions(inputs: Inputs) -> Tensor:
    module, here = inputs.module, inputs.positions[inputs.rows]
    if isinstance(module, PositionalEncoding):  # whose table is rounded to float32
        return inputs.cast(sinusoids(here, module.pe.shape[-1], module.pairs))
    return inputs.cast(module.embed(here))


def _positions_equation(cell: Cell) -> Equation:
    module, place, column = cell.module, int(cell.positions[cell.row]), cell.column
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


def _segments(inputs: Inputs) -> Tensor:
    segments = inputs.values.segments(inputs.stage.stack)[inputs.rows]
    return inputs.cast(inputs.module.weight[segments])


def _segments_equation(cell: Cell) -> Equation:
    row = int(cell.values.segments(cell.stage.stack)[cell.row])
    return looked_up(float(cell.module.weight[row, cell.column]), rf"S_{{{row},\,{cell.column}}}")


def _sum_formula(stage: Stage, config: TransformerConfig) -> str:
    symbols = {"embed": "e_t", "pos_embed": "p_t", "segment_embed": "s_t"}
    return "x_t = " + " + ".join(symbols[name.split(".")[-1]] for name in stage.reads)


def _sum(inputs: Inputs) -> Tensor:
    return torch.stack([inputs.read(at) for at in range(len(inputs.stage.reads))]).sum(0)


# ---- norms, linear maps and activations --------------------------------------------------


def _norm_formula(stage: Stage, config: TransformerConfig) -> str:
    made = symbol_of(stage.name, config)
    x = "z" if made == "z" else "x"
    becomes = r"\leftarrow" if made in ("x", "z") else "="
    if config.norm == "rms":
        size = rf"\sqrt{{\tfrac{{1}}{{d}}\sum {x}_i^2 + {epsilon(config)}}}"
        return rf"{made} {becomes} \gamma \odot \frac{{{x}}}{{{size}}}"
    size = rf"\sqrt{{\sigma^2 + {epsilon(config)}}}"
    return rf"{made} {becomes} \gamma \odot \frac{{{x} - \mu}}{{{size}}} + \beta"


def norm_kind(
    title: str, sentence: str, formula: Any = _norm_formula, recorded: bool = False
) -> Kind:
    return Kind(
        title,
        STREAM,
        sentence,
        formula,
        lambda inputs: run(inputs.module, inputs.read()),
        lambda cell: normed(cell.vector(), cell.module, cell.column),
        recorded,
    )


def linear_kind(
    title: str, shapes: Shapes, symbols: str, has_bias: str, recorded: bool = False
) -> Kind:
    """`symbols` are those of output, weight and bias, `has_bias` the config's word for the bias."""
    made, weight, bias = symbols.split()

    def formula(stage: Stage, config: TransformerConfig) -> str:
        end = f" + {bias}" if getattr(config, has_bias) else ""
        return rf"{made} = {symbol_read(stage, config)}\,{weight}{end}"

    return Kind(
        title,
        shapes,
        "A linear map, the same for every token.",
        formula,
        lambda inputs: run(inputs.module, inputs.read()),
        lambda cell: projected(cell, cell.module, cell.column),
        recorded,
    )


def projected(cell: Cell, module: Any, row: int) -> Equation:
    """One number of a linear map: what is read times one row of the weight."""
    bias = None if module.bias is None else float(module.bias[row])
    symbols = symbol_read(cell.stage, cell.values.config), "w"
    return dot_product(cell.vector(), module.weight[row], bias, symbols)


def _activation_formula(stage: Stage, config: TransformerConfig) -> str:
    x = "g" if config.gated else "u"
    made = ACTIVATIONS[config.activation].replace("{x}", x)
    return rf"h = {made}" + (r"\;\odot\; u" if config.gated else "")


def _activation(inputs: Inputs) -> Tensor:
    made: Tensor = inputs.values.branch(inputs.stage).activation(inputs.read())
    return made * inputs.read(1) if len(inputs.stage.reads) > 1 else made


def _activation_equation(cell: Cell) -> Equation:
    x, *gated = cell.numbers()
    activation = cell.values.branch(cell.stage).activation
    made = activated(x, cell.values.config.activation, activation(cell.vector()[cell.column]))
    if not gated:
        return made
    return Equation(rf"{made.latex} \cdot {number(gated[0])}", made.total * gated[0])


LOOKUP = (*TOKENS, *STREAM)
STREAM_KINDS = {
    "tokens": Kind(
        "Tokens",
        TOKENS,
        "The model reads one integer per token, its ID in the vocabulary.",
        r"\mathrm{id}_t = \text{ID of token } t",
        lambda inputs: inputs.values.ids(inputs.stage.stack)[inputs.rows],
    ),
    "embedding": Kind(
        "Embedding",
        LOOKUP,
        "Each token ID selects its row of the embedding table.",
        _embedding_formula,
        _embedding,
        _embedding_equation,
        recorded=True,
    ),
    "positions": Kind(
        "Positions",
        LOOKUP,
        "One vector per position, to be added to the embedding.",
        _positions_formula,
        _positions,
        _positions_equation,
        recorded=True,
    ),
    "segments": Kind(
        "Segments",
        LOOKUP,
        "One vector for the first text and one for the second, to be added to the embedding.",
        r"s_t = S[\text{segment of } t]",
        _segments,
        _segments_equation,
        recorded=True,
    ),
    "sum": Kind(
        "Sum",
        STREAM,
        "The sum is the start of the residual stream.",
        _sum_formula,
        _sum,
        lambda cell: added(cell.numbers()),
    ),
    "norm": norm_kind(
        "Norm", "The sub-layer reads the normed residual stream; the stream itself stays as it is."
    ),
    "output norm": norm_kind(
        "Output norm", "The output of the sub-layer is normed before it is added."
    ),
    "stream norm": norm_kind(
        "Norm", "The residual stream itself is normed and continues from here.", recorded=True
    ),
    "final norm": norm_kind("Final norm", "The last norm of the residual stream.", recorded=True),
    "output projection": linear_kind(
        "Output projection", STREAM, "z W_O b_O", "has_out_bias", recorded=True
    ),
    "gate": linear_kind("Gate projection", HIDDEN, "g W_g b_g", "has_mlp_bias"),
    "up": linear_kind("Up projection", HIDDEN, "u W_1 b_1", "has_mlp_bias"),
    "down": linear_kind("Down projection", STREAM, "z W_2 b_2", "has_mlp_bias", recorded=True),
    "activation": Kind(
        "Activation",
        HIDDEN,
        "The activation function is applied to each number.",
        _activation_formula,
        _activation,
        _activation_equation,
        recorded=True,
    ),
    "add": Kind(
        "Add",
        STREAM,
        "The output of the sub-layer is added to the residual stream.",
        r"x \leftarrow x + z",
        _sum,
        lambda cell: added(cell.numbers()),
        recorded=True,
    ),
}
