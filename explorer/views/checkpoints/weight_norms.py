"""The root mean square of the weights: one number for every part of every layer."""

from collections.abc import Sequence

import streamlit as st

from explorer.analysis.weight_statistics import LayerNorms, TensorSummary, by_layer, summarized
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.progress import with_bar
from explorer.catalog.folders import own_name
from explorer.catalog.open_model import OpenModel
from explorer.components import matrix
from explorer.inference.results_cache import kept, size_of
from explorer.text.number_format import shape
from explorer.views.shared.code_panel import Script, script

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
    """Every tensor in numbers, computed once for a model."""
    total = opened.model.n_parameters

    def make() -> tuple[TensorSummary, ...]:
        doing = f"Reading {total:,} parameters"
        return tuple(with_bar(summarized(opened.model), total, doing, lambda one: one.count))

    return kept(opened, "survey", make, size_of)


def draw_weight_norms(context: PageContext, opened: OpenModel) -> Script:
    """One kind at a time, since norm gains are far larger than weights; then every tensor."""
    found = summaries(opened)
    known = {title: by_layer(found, kind) for title, kind in KIND_TITLES.items()}
    known = {title: tables for title, tables in known.items() if tables}
    title = one_of("tensors", list(known), next(iter(known)), label_visibility="collapsed")
    st.markdown(f"**{title}: root mean square** · layers down, parts across")
    for place, table in zip(st.columns(len(known[title])), known[title], strict=True):
        with place:
            _draw_norms(table, own_name(context.choice.model))
    st.caption(NORMS_EXPLAINED)
    st.markdown("**Every tensor**")
    _draw_tensor_list(found)
    return script(norms_code, opened)


def _draw_norms(table: LayerNorms, model: str) -> None:
    layers = len(table.values)
    matrix(
        table.values,
        [str(layer) for layer in range(layers)],
        [short_part(part) for part in table.parts],
        key=f"norms_{table.stack}",
        title=f"{model} · Root mean square of the {table.stack}'s tensors",
        row_name=f"{table.stack} layer",
        column_name="part",
        sentence="Layer {row}, {column}: root mean square {value}",
        unit="root mean square",
        absent="not in this layer",
        height=min(HIGHEST, ROW * layers + AROUND),
    )


def short_part(part: str) -> str:
    """A name that fits above a column: `self_attn.q_proj.bias` is "q_proj.bias"."""
    for long, said in SHORTER:
        part = part.replace(long, said)
    return part


def _draw_tensor_list(found: Sequence[TensorSummary]) -> None:
    st.dataframe(
        {
            "tensor": [one.name for one in found],
            "shape": [shape(one.shape) for one in found],
            "mean": [one.mean for one in found],
            "std": [one.std for one in found],
            "rms": [one.rms for one in found],
            "norm": [one.norm for one in found],
            "largest |w|": [one.largest for one in found],
            "zeros": [100 * one.share_of_zeros for one in found],
        },
        hide_index=True,
        height=min(420, 38 + 35 * len(found)),
        column_config={
            "shape": st.column_config.TextColumn(alignment="right"),
            "zeros": st.column_config.NumberColumn(format="%.3g%%"),
            **{
                name: st.column_config.NumberColumn(format="%.3g")
                for name in ("mean", "std", "rms", "norm")
            },
            "largest |w|": st.column_config.NumberColumn(format="%.3g"),
        },
    )


def norms_code(opened: OpenModel) -> None:
    named = opened.model.named_parameters()
    rms = {name: float(weight.square().mean().sqrt()) for name, weight in named}
    print(rms)
