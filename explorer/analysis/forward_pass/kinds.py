"""Every kind of stage: its title, its formula, and one of its numbers as an equation.

Shapes: t tokens, q queries, k keys, d width of the input; always of the head that is shown.
"""

import math
from typing import Any

from explorer.analysis.forward_pass.equation import (
    ACTIVATIONS,
    Equation,
    activation,
    addition,
    dot_product,
    epsilon,
    linear,
    lookup,
    norm,
    number_latex,
    rms_formula,
    sigmoid,
    soft_cap,
    softmax,
    under,
)
from explorer.analysis.forward_pass.stage import (
    HEADS,
    HIDDEN,
    SQUARE,
    STREAM,
    TOKENS,
    Kind,
    Shapes,
    Stage,
    StageCell,
    symbol_of,
    symbol_read,
)
from explorer.text.number_format import three
from models import TransformerConfig
from models.masking import keep_of
from models.position_biases import AlibiPositions
from models.positional import PositionalEncoding


def projection(cell: StageCell, module: Any, row: int) -> Equation:
    """One number of a linear map: the input times one row of the weight."""
    bias = None if module.bias is None else float(module.bias[row])
    symbols = symbol_read(cell.stage, cell.config), "w"
    return dot_product(cell.read(), module.weight[row], bias, symbols)


class Norm(Kind):
    def __init__(self, title: str, text: str, *taps: str) -> None:
        super().__init__(*taps)
        self.title, self.text = title, text

    def title_of(self, name: str, config: TransformerConfig) -> str:
        return "Embedding norm" if name.endswith(".embed_norm") else self.title

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        symbol = symbol_of(stage.name, config)
        x = "z" if symbol == "z" else "x"
        start = rf"{symbol} \leftarrow" if symbol == x else f"{symbol} ="
        if config.norm == "rms":
            return f"{start} {rms_formula(x, 'd', config)}"
        size = rf"\sqrt{{\sigma^2 + {epsilon(config)}}}"
        return rf"{start} \gamma \odot \frac{{{x} - \mu}}{{{size}}} + \beta"

    def short(self, stage: Stage, config: TransformerConfig) -> str:
        x = "z" if symbol_of(stage.name, config) == "z" else "x"
        return f"γ {x} / rms" if config.norm == "rms" else f"γ ({x} − μ) / σ + β"

    def equation(self, cell: StageCell) -> Equation | None:
        return norm(cell.read(), cell.module, cell.column)


class Softmax(Kind):
    shapes, plain = SQUARE, "softmax(s)"

    def __init__(self, title: str, text: str, latex: str, *taps: str) -> None:
        super().__init__(*taps)
        self.title, self.text, self.latex = title, text, latex

    def equation(self, cell: StageCell) -> Equation | None:
        return softmax(cell.read(), cell.column)


class AttentionWeights(Softmax):
    """The softmax of a row, times its scale where the model has one."""

    def sentence(self, config: TransformerConfig) -> str:
        return self.text + (" Each row is then scaled." if scales_rows(config) else "")

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        return self.latex.replace("= ", r"= r_i \cdot ") if scales_rows(config) else self.latex

    def equation(self, cell: StageCell) -> Equation | None:
        equation = softmax(cell.read(), cell.column)
        if equation is None or not scales_rows(cell.config):
            return equation
        scale = float(cell.read(1))
        latex = rf"{number_latex(scale, alone=True)} \cdot {equation.latex}"
        return Equation(latex, scale * equation.total)


class RowScale(Kind):
    title, shapes = "Scale of the rows", (("batch", "heads", "queries", "1"),)
    text = "A factor of each row of weights: how much of it goes to any key at all."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        parts = [r"\sigma(w_h \cdot y_i)"] * config.gated_attention
        parts += [r"\sigma(\ln \sum_j e^{s_{ij}} - b_h)"] * config.sink_logit
        return "r_i = " + r" \cdot ".join(reversed(parts))

    def short(self, stage: Stage, config: TransformerConfig) -> str:
        return "σ(ln Σ eˢ − b)" if config.sink_logit else "σ(W_g y)"

    def equation(self, cell: StageCell) -> Equation | None:
        """A product of sigmoids, of what a row has for its keys and of its gate."""
        block = getattr(cell.model, cell.stage.stack).blocks[cell.stage.layer]
        rows, parts = getattr(block, cell.stage.branch).rows, []
        for at, name in enumerate(cell.stage.reads):
            if name.endswith(".masked"):
                parts.append(sigmoid(cell.read(at).logsumexp(-1) - rows.bias[cell.head]))
            else:
                parts.append(sigmoid(cell.read(at) @ rows.gate.weight[cell.head].double()))
        return Equation(
            r" \cdot ".join(part.latex for part in parts), math.prod(part.total for part in parts)
        )


def scales_rows(config: TransformerConfig) -> bool:
    return config.sink_logit or config.gated_attention


class Probabilities(Softmax):
    """Of the output head's options: of all together, or of every label by itself."""

    def sentence(self, config: TransformerConfig) -> str:
        return EACH_BY_ITSELF if config.score_function == "sigmoid" else self.text

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        return SIGMOID if config.score_function == "sigmoid" else self.latex

    def equation(self, cell: StageCell) -> Equation | None:
        if cell.config.score_function == "sigmoid":
            return sigmoid(cell.read()[cell.column])
        return super().equation(cell)


EACH_BY_ITSELF = "The sigmoid of each logit: every label has a probability of its own."
SIGMOID = r"p_v = \frac{1}{1 + e^{-\ell_v}}"
VECTORS = {"q": "Queries", "k": "Keys", "v": "Values"}


class OfHeads(Kind):
    """Queries, keys or values, whose names begin with their letter."""

    addition = ""

    def title_of(self, name: str, config: TransformerConfig) -> str:
        return VECTORS[name.split(".")[-1][0]] + self.addition

    def shapes_of(self, name: str, config: TransformerConfig) -> Shapes:
        *_, branch, tail = name.split(".")
        is_q = tail[0] == "q"
        heads = "heads" if is_q or config.kv_heads == config.n_heads else "kv heads"
        along = "source tokens" if not is_q and branch == "cross_attn" else "tokens"
        return (("batch", heads, along, "d_head"),)


class Projection(OfHeads):
    text = "One projection for all heads, split into heads."

    def shapes_of(self, name: str, config: TransformerConfig) -> Shapes:
        ((_, heads, along, width),) = split = super().shapes_of(name, config)
        return ("batch", along, f"{heads}·{width}"), ("batch", along, heads, width), *split

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        letter, reads = stage.name.split(".")[-1][0].upper(), symbol_read(stage, config)
        bias = rf" + b_{letter}" if config.qkv_bias else ""
        heads = config.n_heads if letter == "Q" else config.kv_heads
        product = rf"{letter} = {reads}\,W_{letter}{bias}, \quad \text{{split into {heads} heads}}"
        is_stream = reads == "m" and not stage.reads[0].endswith(".final")
        return product + (r", \quad m = x \text{ of the encoder}" if is_stream else "")

    def short(self, stage: Stage, config: TransformerConfig) -> str:
        letter = stage.name.split(".")[-1][0].upper()
        bias = f" + b_{letter}" if config.qkv_bias else ""
        return f"{symbol_read(stage, config)} W_{letter}{bias}"

    def equation(self, cell: StageCell) -> Equation:
        width = cell.config.head_width
        heads = len(cell.module.weight) // width
        first = cell.head * heads // cell.config.n_heads * width  # the row that the head begins at
        return projection(cell, cell.module, first + cell.column)


class HeadNorm(OfHeads):
    """The norm of queries or keys: always an RMSNorm, whatever the other norms are."""

    text, addition = "The vectors of every head are normalized.", ", normalized"

    def equation(self, cell: StageCell) -> Equation | None:
        return norm(cell.read(), cell.module, cell.column)

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        x = stage.name.split(".")[-1][0]
        return rf"\hat {x} = {rms_formula(x, 'w', config)}"

    def short(self, stage: Stage, config: TransformerConfig) -> str:
        return f"γ {stage.name.split('.')[-1][0]} / rms"


class Rotation(OfHeads):
    addition = ", rotated"
    text = "Pairs of dimensions are rotated by an angle that grows with the position."
    latex = (
        r"(a, b) \mapsto (a\cos\varphi - b\sin\varphi,\; a\sin\varphi + b\cos\varphi), "
        r"\quad \varphi = t\,\theta_i"
    )

    def short(self, stage: Stage, config: TransformerConfig) -> str:
        return f"R_t {stage.name.split('.')[-1][0]}"

    def equation(self, cell: StageCell) -> Equation:
        """A pair is rotated by position × frequency; the dimensions after the pairs stay."""
        rotary, x, column = cell.module, cell.read(), cell.column
        half = rotary.d_head // 2
        if column >= 2 * half:
            return Equation(number_latex(float(x[column]), alone=True), float(x[column]))
        if rotary.pairs == "halves":
            is_second, pair = divmod(column, half)
            first, second = pair, pair + half
        else:
            pair, is_second = divmod(column, 2)
            first, second = 2 * pair, 2 * pair + 1
        angle = cell.positions[cell.row] * rotary.frequencies()[pair]  # float32, as in the pass
        cosine, sine = float(angle.cos()), float(angle.sin())
        a, b, turn = float(x[first]), float(x[second]), number_latex(float(angle), alone=True)
        of_a, sign, of_b = ("sin", "+", "cos") if is_second else ("cos", "-", "sin")
        latex = rf"{number_latex(a)} \{of_a} {turn} {sign} {number_latex(b)} \{of_b} {turn}"
        total = a * sine + b * cosine if is_second else a * cosine - b * sine
        stretch = 1.0 if rotary.scaling is None else rotary.scaling.attention_factor
        if stretch != 1:
            latex = rf"{number_latex(stretch)} \left({latex}\right)"
        return Equation(latex, stretch * total)


class DotProducts(Kind):
    title, shapes = "Dot products", SQUARE
    text = "The dot product of every query with every key."
    latex = r"q_i \cdot k_j = \sum_n q_{in}\,k_{jn}"

    def equation(self, cell: StageCell) -> Equation:
        key = cell.whole(1)[cell.column]
        return dot_product(cell.read(), key, symbols=("q", "k"))


class Scores(Kind):
    title, shapes = "Scores", SQUARE

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

    def short(self, stage: Stage, config: TransformerConfig) -> str:
        scaled = "q · k" if config.scale == 1 else f"{three(config.scale)} q · k"
        if self._by_root(config):
            scaled = f"q · k / √{config.head_width}"
        cap = config.attention_cap
        return scaled if cap is None else f"{three(cap)} tanh({scaled} / {three(cap)})"

    def equation(self, cell: StageCell) -> Equation:
        (product,), config = cell.numbers(), cell.config
        latex = rf"{number_latex(config.scale, alone=True)} \cdot {number_latex(product)}"
        if self._by_root(config):
            latex = rf"\frac{{{number_latex(product, alone=True)}}}{{\sqrt{{{config.head_width}}}}}"
        return soft_cap(Equation(latex, product * config.scale), config.attention_cap)

    def _by_root(self, config: TransformerConfig) -> bool:
        return math.isclose(config.scale, config.head_width**-0.5)


class PositionBias(Kind):
    title, shapes = "Position bias", SQUARE
    text = "Added to the score; it depends on the distance between query and key."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        if config.positions == "alibi":
            return r"b_{ij} = -m_h\,|i - j|"
        return r"b_{ij} = B_h[\mathrm{bucket}(j - i)]"

    def short(self, stage: Stage, config: TransformerConfig) -> str:
        return "−m |i − j|" if config.positions == "alibi" else "B[bucket(j − i)]"

    def equation(self, cell: StageCell) -> Equation:
        """What ALiBi subtracts by distance, or the number of the bucket of the distance."""
        module, head = cell.module, cell.head
        offset = cell.positions[cell.column] - cell.positions[cell.row]
        if isinstance(module, AlibiPositions):
            slope, apart = float(module.slopes()[head]), abs(int(offset))
            return Equation(rf"-{number_latex(slope)} \cdot {apart}", -slope * apart)
        bucket = int(module.buckets(offset))
        return lookup(float(module.table.weight[bucket, head]), rf"B_{{{bucket},\,{head}}}")


class MaskedScores(Kind):
    title, shapes = "Masked scores", SQUARE
    text = "The scores of masked keys are set to −∞."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        summed = "s_{ij} + b_{ij}" if len(stage.reads) > 1 else "s_{ij}"
        cases = rf"{summed} & i \text{{ may attend to }} j \\ -\infty & \text{{else}}"
        return rf"s_{{ij}} \leftarrow \begin{{cases}} {cases} \end{{cases}}"

    def short(self, stage: Stage, config: TransformerConfig) -> str:
        return f"{'s + b' if len(stage.reads) > 1 else 's'}, else −∞"

    def equation(self, cell: StageCell) -> Equation:
        if cell.mask is not None and not cell.mask[cell.row, cell.column]:
            return Equation(r"-\infty \quad \text{this key is masked}", -math.inf)
        score, *bias = cell.numbers()
        if bias:
            return addition([score, *bias])
        return lookup(score, rf"s_{{{cell.row}\,{cell.column}}} \text{{, not masked}}")


class HeadOut(Kind):
    title, shapes, plain = "Head outputs", HEADS, "Σ a v"
    text = "The mean of the values, weighted by the attention weights of each query."
    latex = r"o_i = \sum_j a_{ij}\,v_j"

    def equation(self, cell: StageCell) -> Equation:
        values = cell.whole(1)[:, cell.column]
        return dot_product(cell.read(), values, symbols=("a", "v"))


class Concat(Kind):
    title = "Concatenated heads"
    shapes = *HEADS, ("batch", "tokens", "heads", "d_head"), ("batch", "tokens", "heads·d_head")
    text = "The outputs of all heads, side by side."
    latex = r"H = [\,o^{(0)},\; o^{(1)},\; \dots\,]"

    def equation(self, cell: StageCell) -> Equation:
        head, at = divmod(cell.column, cell.config.head_width)
        value = float(cell.value(cell.stage.name)[cell.row, cell.column])
        return lookup(value, rf"o^{{({head})}}_{{{at}}}")


class TokenIds(Kind):
    title, shapes = "Tokens", TOKENS
    text = "The model reads one integer per token, its ID in the vocabulary."
    latex = r"\mathrm{id}_t = \text{ID of token } t"


class LookUp(Kind):
    """A term of the sum that starts the residual stream."""

    shapes = (*TOKENS, *STREAM)


class Embedding(LookUp):
    title = "Embedding"
    text = "Each token ID selects its row of the embedding table."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        factor = config.embedding_scale
        scale = "" if factor == 1 else rf"{_factor(factor, config.d_model)}\; "
        is_all = config.positions not in ("sinusoidal", "learned") and not config.n_segments
        return rf"{'x' if is_all else 'e'}_t = {scale}E[\mathrm{{id}}_t]"

    def equation(self, cell: StageCell) -> Equation:
        token, scale = int(cell.read()), cell.config.embedding_scale
        weight = float(cell.module.weight[token, cell.column])
        entry = lookup(weight, rf"E_{{{token},\,{cell.column}}}", alone=scale == 1)
        if scale == 1:
            return entry
        factor = _factor(scale, cell.config.d_model)
        return Equation(rf"{factor} \cdot {entry.latex}", scale * weight)


def _factor(scale: float, width: int) -> str:
    is_root = math.isclose(scale, math.sqrt(width))
    return rf"\sqrt{{{width}}}" if is_root else number_latex(scale, alone=True)


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

    def equation(self, cell: StageCell) -> Equation:
        module, column, place = cell.module, cell.column, int(cell.positions[cell.row])
        if not isinstance(module, PositionalEncoding):
            row = place + module.offset
            return lookup(float(module.table.weight[row, column]), rf"P_{{{row},\,{column}}}")
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

    def equation(self, cell: StageCell) -> Equation:
        row, column = int(cell.segments[cell.row]), cell.column
        return lookup(float(cell.module.weight[row, column]), rf"S_{{{row},\,{column}}}")


class Addition(Kind):
    """The sum of the stages that it reads."""

    title, plain = "Add", "x + z"
    text = "The output of the sub-layer is added to the residual stream."
    latex = r"x \leftarrow x + z"

    def equation(self, cell: StageCell) -> Equation:
        return addition(cell.numbers())


class EmbeddingSum(Addition):
    title = "Sum"
    text = "The sum starts the residual stream."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        symbols = {"embed": "e_t", "pos_embed": "p_t", "segment_embed": "s_t"}
        return "x_t = " + " + ".join(symbols[name.split(".")[-1]] for name in stage.reads)


ALIKE, ONE_EACH = "A linear map, the same for every token.", "One logit for each class."


class Linear(Kind):
    """`symbols` are those of output, weight and bias; `has_bias` is a field of the config."""

    def __init__(
        self, title: str, shapes: Shapes, symbols: str, has_bias: str, *taps: str, text: str = ALIKE
    ) -> None:
        super().__init__(*taps)
        self.title, self.shapes, self.text = title, shapes, text
        self.symbols, self.has_bias = symbols.split(), has_bias

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        symbol, weight, bias = self.symbols
        end = f" + {bias}" if getattr(config, self.has_bias) else ""
        return rf"{symbol} = {symbol_read(stage, config)}\,{weight}{end}"

    def short(self, stage: Stage, config: TransformerConfig) -> str:
        _, weight, bias = self.symbols
        end = f" + {bias}" if getattr(config, self.has_bias) else ""
        return f"{symbol_read(stage, config)} {weight}{end}"

    def equation(self, cell: StageCell) -> Equation:
        return projection(cell, cell.module, cell.column)


class Activation(Kind):
    title, shapes = "Activation", HIDDEN
    text = "The activation function is applied to each number."

    def title_of(self, name: str, config: TransformerConfig) -> str:
        return "Gated activation" if config.gated else self.title

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        left = ACTIVATIONS[config.activation].replace("{x}", "g" if config.gated else "u")
        return f"h = {left}" + (r"\;\odot\; u" if config.gated else "")

    def short(self, stage: Stage, config: TransformerConfig) -> str:
        x = "g" if config.gated else "u"
        left = f"max(0, {x})" if config.activation == "relu" else f"{config.activation}({x})"
        return f"{left} · u" if config.gated else left

    def equation(self, cell: StageCell) -> Equation:
        _, *gated = cell.numbers()
        left = activation(cell.read()[cell.column], cell.config.activation, cell.activation)
        if not gated:
            return left
        return Equation(rf"{left.latex} \cdot {number_latex(gated[0])}", left.total * gated[0])


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

    def equation(self, cell: StageCell) -> Equation:
        config, x = cell.config, cell.whole()[:, cell.column]
        keep = keep_of(cell.ids[None], config.pad_id)
        places = [at for at in range(len(x)) if keep is None or keep[0, at]]
        if config.pooling == "mean":
            total, count = float(x[places].sum()), len(places)
            summed = under(number_latex(total, alone=True), rf"{count} \text{{ tokens, summed}}")
            return Equation(rf"\frac{{{summed}}}{{{count}}}", total / count)
        place = places[0 if config.pooling == "first" else -1]
        return lookup(float(x[place]), rf"{symbol_read(cell.stage, config)}_{{{place}}}")


class ClassHidden(Kind):
    title, shapes = "Hidden layer", (("batch", "d_classifier"),)
    text = "The hidden layer of the classifier head."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        return "h = " + ACTIVATIONS[config.classifier_activation].replace("{x}", r"c\,W + b")

    def equation(self, cell: StageCell) -> Equation:
        x = linear(cell.model.head.hidden, cell.read())[cell.column]
        return activation(x, cell.config.classifier_activation, cell.model.head.activation)


class Transform(Kind):
    title = "Transform"
    text = "One more layer before the logits."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        x, name = symbol_read(stage, config), config.activation
        return rf"c = \mathrm{{Norm}}(f({x}\,W + b)), \quad f = \text{{{name}}}"

    def equation(self, cell: StageCell) -> Equation | None:
        x = cell.module.activation(linear(cell.module.proj, cell.read()))
        return norm(x, cell.module.norm, cell.column)


class Logits(Kind):
    title, shapes = "Logits", (("batch", "tokens", "vocabulary"),)
    text = "One logit for each token of the vocabulary."

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        weight = r"E^\top" if config.tie_embeddings else "W"
        scale = "" if config.logit_scale == 1 else rf"{three(config.logit_scale)} \cdot "
        bias = " + b" if config.has_head_bias else ""
        product = rf"{scale}{symbol_read(stage, config)}\,{weight}{bias}"
        if config.logit_cap is None:
            return rf"\ell = {product}"
        cap = three(config.logit_cap)
        return rf"\ell = {cap} \tanh\left(\frac{{{product}}}{{{cap}}}\right)"

    def equation(self, cell: StageCell) -> Equation:
        head, column = cell.model.head, cell.column
        x = cell.whole()[cell.places[cell.row]] * head.scale
        bias = None if head.bias is None else float(head.bias[column])
        symbols = symbol_read(cell.stage, cell.config), "w"
        logit = dot_product(x, cell.unembedding[column], bias, symbols)
        if head.cap is None:
            return logit
        return soft_cap(Equation(number_latex(logit.total, alone=True), logit.total), head.cap)


KINDS: dict[str, Kind] = {
    "value": Kind(),
    "tokens": TokenIds(),
    "embedding": Embedding("embed"),
    "positions": PositionVectors("pos_embed"),
    "segments": Segments("segment_embed"),
    "sum": EmbeddingSum("sum"),
    "norm": Norm("Norm", "Read by the sub-layer; the residual stream itself is unchanged.", "norm"),
    "output norm": Norm("Output norm", "The output is normalized before it is added.", "out_norm"),
    "stream norm": Norm(
        "Norm",
        "The residual stream itself is normalized.",
        *("embed_norm", "resid_mid", "resid_cross", "resid_post"),
    ),
    "final norm": Norm("Final norm", "The last norm of the residual stream.", "final"),
    "projected": Projection("q_proj", "k_proj", "v"),
    "head norm": HeadNorm("q_norm", "k_norm"),
    "rotated": Rotation("q", "k"),
    "products": DotProducts(),
    "scores": Scores("scores"),
    "bias": PositionBias("bias"),
    "masked": MaskedScores("masked"),
    "row scale": RowScale("row_scale"),
    "weights": AttentionWeights(
        "Attention weights",
        "The softmax of each row over its visible keys: its weights sum to 1, or are all 0 where "
        "every key is masked.",
        r"a_{ij} = \frac{e^{s_{ij}}}{\sum_{j'} e^{s_{ij'}}}",
        "weights",
    ),
    "head out": HeadOut("head_out"),
    "concat": Concat(),
    "output projection": Linear("Output projection", STREAM, "z W_O b_O", "has_out_bias", "out"),
    "gate": Linear("Gate projection", HIDDEN, "g W_g b_g", "has_mlp_bias", "gate"),
    "up": Linear("Up projection", HIDDEN, "u W_1 b_1", "has_mlp_bias", "up"),
    "activation": Activation("mlp.hidden"),
    "down": Linear("Down projection", STREAM, "z W_2 b_2", "has_mlp_bias", "mlp.out"),
    "add": Addition("add"),
    "pooled": Pooling("pooled"),
    "class hidden": ClassHidden("hidden"),
    "class logits": Linear(
        "Logits", (("batch", "classes"),), r"\ell W b", "classifier_bias", text=ONE_EACH
    ),
    "transform": Transform("transform"),
    "logits": Logits("logits"),
    "probabilities": Probabilities(
        "Probabilities",
        "The softmax of the logits: probabilities that sum to 1.",
        r"p_v = \frac{e^{\ell_v}}{\sum_{v'} e^{\ell_{v'}}}",
    ),
}
"""The kinds by name. A value without a kind of its own is a `value`, named after its tap."""
BY_TAP = {tap: name for name, kind in KINDS.items() for tap in kind.taps}


def kind_of(branch: str, tap: str) -> str:
    """The kind of a value of this branch, by the first name under which a tap receives it."""
    return BY_TAP.get(f"{branch}.{tap}") or BY_TAP.get(tap, "value")
