"""The kinds of stage outside the attention: embedding, residual stream, feed-forward.

Shapes: t tokens, q queries, k keys, d width of what is read.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from explorer.analysis.forward_pass.equation import (
    Equation,
    added,
    looked_up,
    number_latex,
    under,
)
from explorer.analysis.forward_pass.kind_formulas import (
    ACTIVATIONS,
    activated,
    projected,
    symbol_read,
)
from explorer.analysis.forward_pass.stage_kind import (
    HIDDEN,
    STREAM,
    TOKENS,
    Inputs,
    Kind,
    Shapes,
    Stage,
)
from models import TransformerConfig
from models.positional import PositionalEncoding, sinusoids


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
