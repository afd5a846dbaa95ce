"""The root mean square of the weights of every part of every layer."""

import streamlit as st

from explorer.analysis.weight_statistics import LayerNorms, TensorSummary, by_layer, summarized
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.progress import with_bar
from explorer.catalog.folders import own_name
from explorer.catalog.opened_model import OpenModel
from explorer.components.matrix import matrix
from explorer.inference.results_cache import cached
from explorer.text.number_format import shape
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.tables import table

ROW, AROUND, HIGHEST = 46, 150, 700
KIND_TITLES = {"Matrices": "matrix", "Norm gains": "gain", "Biases": "bias"}
SHORTER = (
    (".weight", ""),
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
    tensors = summaries(opened)
    by_kind = {
        title: stacks for title, kind in KIND_TITLES.items() if (stacks := by_layer(tensors, kind))
    }
    title = one_of("tensors", list(by_kind), next(iter(by_kind)), label_visibility="collapsed")
    st.markdown(f"**{title}: root mean square** · layers down, parts across")
    for place, norms in zip(st.columns(len(by_kind[title])), by_kind[title], strict=True):
        with place:
            _draw_norms(norms, own_name(context.choice.model))
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


def _draw_norms(norms: LayerNorms, model: str) -> None:
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


def short_part(part: str) -> str:
    """The name above a column: `self_attn.q_proj.bias` is "q_proj.bias"."""
    for long, short in SHORTER:
        part = part.replace(long, short)
    return part


def norms_code(opened: OpenModel) -> None:
    named = opened.model.named_parameters()
    rms = {name: float(weight.square().mean().sqrt()) for name, weight in named}
    print(rms)
