"""The weights of the chosen model: a picture of one tensor, its singular values, all norms."""

import math

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.singular_values import (
    SingularValues,
    SingularValuesError,
    random_edge,
    random_singular_values,
    singular_values_of,
)
from explorer.analysis.weight_statistics import (
    IN_A_LAYER,
    PooledTensor,
    TensorSummary,
    by_layer,
    pooled,
    summarized,
    tensor_summary,
)
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.app.progress import bar, with_bar
from explorer.catalog.opened_model import OpenModel
from explorer.charts import singular_value_chart as figure
from explorer.components.chart import chart
from explorer.components.matrix import matrix
from explorer.inference.results_cache import cached
from explorer.text.number_format import shape, three
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.tables import facts, table

PICTURE_HEIGHT, CURVE_HEIGHT = 560, 440
MEAN, LARGEST = "Mean", "Largest |w|"
CLIPPED, BEYOND = 0.995, 3.0
"""The colour scale ends at this quantile if the largest cell is this many times larger."""
PURPOSES = {
    "q_proj": "what a token looks for (the queries)",
    "k_proj": "what a token offers (the keys)",
    "v_proj": "what a token passes on (the values)",
    "o_proj": "how the heads' outputs come together",
    "mlp.": "the feed-forward layer",
    ".embedding.weight": "a vector for every token",
}
LINEAR, LOGARITHMIC = "Linear", "Logarithmic"
MARCHENKO_PASTUR = (
    "The singular values of a large matrix of independent random numbers end near a known edge. "
    "Those above it show structure, which training or a structured initialization can give; those "
    "below it cannot be told from random ones by their size."
)


def draw_tensor(context: PageContext, opened: OpenModel) -> Script:
    """Draw a heatmap of the chosen tensor, pooled to what a screen can show."""
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        name, tensor = _choose_tensor(context, opened)
    with right:
        cell = one_of("cell", (MEAN, LARGEST), label_visibility="collapsed")
    way = "mean" if cell == MEAN else "largest"
    picture = cached(opened, ("picture", name, way), lambda: pooled(tensor, way))
    numbers = cached(opened, ("summary", name), lambda: tensor_summary(name, tensor))
    picture_column, facts_column = widgets.side_by_side(7, 3)
    with picture_column:
        st.markdown(_named(name))
        st.caption(f"{picture.sentence}{_rows_of_head(context, opened, name)}")
        _draw_picture(picture, f"{opened.title} · {name}")
    with facts_column:
        facts(
            [
                ("shape", shape(numbers.shape)),
                ("weights", f"{numbers.count:,}"),
                ("mean", three(numbers.mean)),
                ("standard deviation", three(numbers.std)),
                ("root mean square", three(numbers.rms)),
                ("norm", three(numbers.norm)),
                ("lowest", three(numbers.lowest)),
                ("highest", three(numbers.highest)),
                ("largest |w|", three(numbers.largest)),
                ("zeros", f"{three(100 * numbers.share_of_zeros)}%"),
                ("not finite", f"{numbers.not_finite:,}"),
            ]
        )
    return script(tensor_code, opened, name)


def draw_singular_values(context: PageContext, opened: OpenModel) -> Script:
    """Draw the singular values of the chosen matrix with those of a random one."""
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        name, tensor = _choose_tensor(context, opened, matrices=True)
    with right:
        axis = one_of("axis", (LINEAR, LOGARITHMIC), label_visibility="collapsed")
    try:
        with bar(f"The singular values of {shape(tuple(tensor.shape))}") as report:
            spectrum = cached(
                opened, ("spectrum", name), lambda: singular_values_of(tensor, report)
            )
    except SingularValuesError as error:
        say(str(error))
    else:
        _draw_curve(name, spectrum, logarithmic=axis == LOGARITHMIC)
    return script(singular_values_code, opened, name)


def _choose_tensor(
    context: PageContext, opened: OpenModel, *, matrices: bool = False
) -> tuple[str, Tensor]:
    """A tensor by its name in a layer, so the bar's layer changes while the tensor stays chosen."""
    stack, attention = context.choice.part.split(".")
    options: dict[str, tuple[str, Tensor]] = {}
    for name, parameter in opened.model.named_parameters():
        inside = IN_A_LAYER.fullmatch(name)
        if matrices and parameter.dim() != 2:
            continue
        if inside is None:
            options[name] = name, parameter
        elif inside["stack"] == stack and int(inside["layer"]) == context.choice.layer:
            options[inside["part"]] = name, parameter
    first = f"{attention}.q_proj.weight"
    option = one_of(
        "tensor",
        list(options),
        first if first in options else next(iter(options)),
        label=f"Tensor: {stack} layer {context.choice.layer}, or outside the layers",
        as_list=True,
    )
    return options[option]


def _named(name: str) -> str:
    """A tensor's name as Markdown, with what it is for where its part says so."""
    purpose = next((words for part, words in PURPOSES.items() if part in name), "")
    return f"`{name}`{f' · {purpose}' if purpose else ''}"


def _draw_picture(picture: PooledTensor, title: str) -> None:
    finite = picture.values[torch.isfinite(picture.values)].abs()
    most = float(finite.max()) if len(finite) else 0.0
    usual = float(finite.quantile(CLIPPED)) if len(finite) else 0.0
    is_clipped = 0 < BEYOND * usual < most
    top = usual if is_clipped else most or 1.0
    is_vector, is_mean = len(picture.block) == 1, picture.how == "mean"
    names = ("index", "offset") if is_vector else ("row", "column")
    cell = "Index {row} {column}" if is_vector else "Row {row}, column {column}"
    units = ("weight", "|weight|") if math.prod(picture.block) == 1 else ("mean", "largest |w|")
    matrix(
        picture.values,
        picture.rows,
        picture.columns,
        key="weights_picture",
        title=title,
        scale="diverging" if is_mean else "sequential",
        row_name=names[0],
        column_name=names[1],
        sentence=f"{cell}: {{value}}",
        unit=units[not is_mean],
        absent="empty",
        allowed=(torch.arange(picture.values.numel()) < picture.cells).view_as(picture.values),
        masked_sentence="The vector ends before this cell.",
        height=PICTURE_HEIGHT,
        top=top,
    )
    if is_clipped:
        beyond = int((finite > top).sum())
        st.caption(
            f"The colour scale ends at {three(top)}; {beyond:,} cells are larger, at most "
            f"{three(most)}."
        )


def _draw_curve(name: str, spectrum: SingularValues, logarithmic: bool) -> None:
    chart_column, facts_column = widgets.side_by_side(7, 3)
    with chart_column:
        st.markdown(
            f"{_named(name)}. Above the dotted edge: more than a random matrix of this size has."
        )
        values = spectrum.values.tolist()
        others = random_singular_values(spectrum.shape, spectrum.rms).tolist()
        spec = figure.singular_value_curves(values, others, spectrum.edge, logarithmic=logarithmic)
        chart(spec, height=CURVE_HEIGHT, key="spectrum", title=f"Singular values of {name}")
        count = len(figure.drawn_ranks(len(values)))
        some = f" The chart has {count} of {len(values):,} ranks." if count < len(values) else ""
        st.caption(f"{MARCHENKO_PASTUR} {spectrum.method}{some}")
    with facts_column:
        facts(
            [
                ("shape", shape(spectrum.shape)),
                ("largest", three(float(spectrum.values[0]))),
                ("smallest", three(float(spectrum.values[-1]))),
                ("random edge", three(spectrum.edge)),
                ("above the edge", f"{spectrum.above_edge:,} of {len(spectrum.values):,}"),
                ("stable rank (norm² / largest²)", three(spectrum.stable_rank)),
                ("50% of norm²", f"{spectrum.directions_for(0.5):,} directions"),
                ("90% of norm²", f"{spectrum.directions_for(0.9):,} directions"),
            ]
        )


def _rows_of_head(context: PageContext, opened: OpenModel, name: str) -> str:
    """Which rows or columns of an attention projection belong to the chosen head."""
    path = name.split(".")
    if path[-1] not in ("weight", "bias") or not path[-2].endswith("_proj") or "mlp" in path:
        return ""
    config, head = opened.config, context.choice.head
    name = f"head {head}"
    if path[-2] in ("k_proj", "v_proj"):
        head = config.kv_head(head)
        name = name if config.kv_heads == config.n_heads else f"key-value head {head}"
    elif path[-2] == "o_proj" and path[-1] == "bias":
        return ""
    first = head * config.head_width
    side = "Columns" if path[-2] == "o_proj" else "Indices" if path[-1] == "bias" else "Rows"
    return f" {side} {first}–{first + config.head_width - 1} are {name}."


def tensor_code(opened: OpenModel, name: str) -> None:
    weight = opened.model.get_parameter(name)
    rms = weight.square().mean().sqrt()
    print(weight.shape, weight.mean(), weight.std(correction=0), rms, weight.norm())
    print(weight.min(), weight.max(), weight.abs().max())


def singular_values_code(opened: OpenModel, name: str) -> None:
    weight = opened.model.get_parameter(name).double()
    values = torch.linalg.svdvals(weight)
    rows, columns = weight.shape
    edge = random_edge((rows, columns), float(weight.square().mean().sqrt()))
    print(values, edge, int((values > edge).sum()))


ROW, AROUND, HIGHEST = 46, 150, 700
KIND_TITLES = {"Matrices": "matrix", "Norm gains": "gain", "Biases": "bias"}
SHORTER = (
    (".weight", ""),
    ("q_proj", "queries"),
    ("k_proj", "keys"),
    ("v_proj", "values"),
    ("o_proj", "output"),
    ("_proj", ""),
    ("self_attn.", ""),
    ("cross_attn.", "cross."),
    ("mlp.", ""),
    ("self_residual.", "attn."),
    ("cross_residual.", "cross."),
    ("mlp_residual.", "mlp."),
)
NORMS_EXPLAINED = (
    "The root mean square of the weights of every part, √(mean of w²). A layer that differs from "
    "the others in its column was trained differently, or read incorrectly."
)


def summaries(opened: OpenModel) -> tuple[TensorSummary, ...]:
    """The summary of every tensor, cached with the model."""
    total = opened.model.n_parameters

    def make() -> tuple[TensorSummary, ...]:
        doing = f"Reading {total:,} parameters"
        return tuple(with_bar(summarized(opened.model), total, doing, lambda tensor: tensor.count))

    return cached(opened, "survey", make)


def draw_weight_norms(context: PageContext, opened: OpenModel) -> Script:
    """Draw one kind of tensor, since gains are far larger than weights; then every tensor."""
    tensors, model = summaries(opened), context.called
    by_kind = {
        title: stacks for title, kind in KIND_TITLES.items() if (stacks := by_layer(tensors, kind))
    }
    title = one_of("tensors", list(by_kind), next(iter(by_kind)), label_visibility="collapsed")
    st.markdown(f"**{title}: root mean square** · layers down, parts across")
    for place, norms in zip(st.columns(len(by_kind[title])), by_kind[title], strict=True):
        with place:
            layers = len(norms.values)
            matrix(
                norms.values,
                [str(layer) for layer in range(layers)],
                [short_part(part) for part in norms.parts],
                key=f"norms_{norms.stack}",
                title=f"{model} · Root mean square of the {norms.stack}'s tensors",
                row_name=f"{norms.stack} layer",
                column_name="part",
                sentence="Layer {row}, {column}: root mean square {value}",
                unit="root mean square",
                absent="not in this layer",
                height=min(HIGHEST, ROW * layers + AROUND),
            )
    st.caption(NORMS_EXPLAINED)
    st.markdown("**Every tensor**")
    columns = {
        "tensor": [tensor.name for tensor in tensors],
        "shape": [shape(tensor.shape) for tensor in tensors],
        "mean": [tensor.mean for tensor in tensors],
        "std": [tensor.std for tensor in tensors],
        "rms": [tensor.rms for tensor in tensors],
        "norm": [tensor.norm for tensor in tensors],
        "largest |w|": [tensor.largest for tensor in tensors],
        "zeros": [100 * tensor.share_of_zeros for tensor in tensors],
    }
    formats = dict.fromkeys([*columns][2:], "%.3g") | {"zeros": "%.3g%%"}
    table(columns, right=["shape"], numbers=formats)
    return script(norms_code, opened)


def short_part(part: str) -> str:
    """The name above a column: `self_attn.q_proj.bias` is "q_proj.bias"."""
    for long, short in SHORTER:
        part = part.replace(long, short)
    return part


def norms_code(opened: OpenModel) -> None:
    named = opened.model.named_parameters()
    rms = {name: float(weight.square().mean().sqrt()) for name, weight in named}
    print(rms)
