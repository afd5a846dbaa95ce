"""One tensor as a picture and in numbers."""

from __future__ import annotations

import math

import streamlit as st
import torch

from explorer.analysis.weight_statistics import Picture, Summary, picture, summary
from explorer.app.context import page_context
from explorer.catalog.entries import Opened
from explorer.components import matrix
from explorer.inference.results_cache import kept, size_of
from explorer.text.number_format import shape, three
from explorer.views.checkpoints.view_choice import choose_tensor, pick
from explorer.views.shared import widgets
from explorer.views.shared.tables import facts

HEIGHT = 560
MEAN, LARGEST = "Mean", "Largest |w|"
CLIPPED, BEYOND = 0.995, 3.0
"""Colours end at this quantile where the largest cell is this many times larger."""


def show(opened: Opened) -> None:
    """A heatmap of the chosen tensor, pooled to what a screen can show."""
    asked, how = st.columns([3, 2], vertical_alignment="bottom")
    with asked:
        name, tensor = choose_tensor(opened)
    with how:
        cell = pick("Each cell is", "cell", (MEAN, LARGEST), MEAN)
    way = "mean" if cell == MEAN else "largest"
    seen = kept(opened, ("picture", name, way), lambda: picture(tensor, way), _bytes)
    found = kept(opened, ("summary", name), lambda: summary(name, tensor), size_of)
    drawn, numbers = widgets.side_by_side(7, 3)
    with drawn:
        st.markdown(f"`{name}`")
        st.caption(f"{seen.sentence}{_whose_rows(opened, name)}")
        _draw(seen)
    with numbers:
        facts(_facts(found))


def _bytes(seen: Picture) -> int:
    return seen.values.nbytes


def _draw(seen: Picture) -> None:
    finite = seen.values[torch.isfinite(seen.values)].abs()
    most = float(finite.max()) if len(finite) else 0.0
    usual = float(finite.quantile(CLIPPED)) if len(finite) else 0.0
    is_clipped = 0 < BEYOND * usual < most
    top = usual if is_clipped else most or 1.0
    one = len(seen.block) == 1
    matrix(
        seen.values,
        seen.rows,
        seen.columns,
        key="weights_picture",
        scale="diverging" if seen.how == "mean" else "sequential",
        row_name="from" if one else "row",
        column_name="on" if one else "column",
        sentence="Numbers {row}, {column} on: {value}"
        if one
        else "Row {row}, column {column}: {value}",
        unit=_unit(seen),
        absent="no number",
        height=HEIGHT,
        top=top,
    )
    if is_clipped:
        beyond = int((finite > top).sum())
        st.caption(
            f"Colours end at {three(top)}: {beyond:,} cells are beyond, the largest {three(most)}."
        )


def _unit(seen: Picture) -> str:
    if math.prod(seen.block) == 1:
        return "weight" if seen.how == "mean" else "|weight|"
    return "mean" if seen.how == "mean" else "largest |w|"


def _whose_rows(opened: Opened, name: str) -> str:
    """Where the chosen head stands in a projection of attention."""
    path = name.split(".")
    if path[-1] not in ("weight", "bias") or not path[-2].endswith("_proj") or "mlp" in path:
        return ""
    config, head = opened.config, page_context().choice.head
    if path[-2] in ("k_proj", "v_proj"):
        head = head * config.kv_heads // config.n_heads
    elif path[-2] == "o_proj" and path[-1] == "bias":
        return ""
    first = head * config.head_width
    side = "Columns" if path[-2] == "o_proj" else "Numbers" if path[-1] == "bias" else "Rows"
    return f" {side} {first}–{first + config.head_width - 1} are head {page_context().choice.head}."


def _facts(found: Summary) -> list[tuple[str, str]]:
    return [
        ("shape", shape(found.shape)),
        ("numbers", f"{found.count:,}"),
        ("mean", three(found.mean)),
        ("standard deviation", three(found.std)),
        ("root mean square", three(found.rms)),
        ("norm", three(found.norm)),
        ("lowest", three(found.lowest)),
        ("highest", three(found.highest)),
        ("largest |w|", three(found.largest)),
        ("zeros", f"{three(100 * found.share_of_zeros)}%"),
        ("not finite", f"{found.not_finite:,}"),
    ]
