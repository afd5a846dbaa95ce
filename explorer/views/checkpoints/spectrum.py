"""The singular values of one matrix, and what they tell."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.singular_values import Spectrum, SpectrumError, noise, spectrum
from explorer.app.messages import say
from explorer.app.progress import bar
from explorer.catalog.entries import Opened
from explorer.charts import singular_value_chart as figure
from explorer.inference.results_cache import kept
from explorer.text.number_format import shape, three
from explorer.views.checkpoints.view_choice import choose_tensor, pick
from explorer.views.shared import widgets
from explorer.views.shared.tables import facts

HEIGHT = 440
LINEAR, LOGARITHMIC = "Linear", "Logarithmic"
EXPLAINED = (
    "Fresh weights are noise, and the singular values of noise end at a known edge. What "
    "training has written stands out above it."
)


def show(opened: Opened) -> None:
    """The spectrum of the chosen matrix over that of noise."""
    asked, how = st.columns([3, 2], vertical_alignment="bottom")
    with asked:
        name, tensor = choose_tensor(opened, matrices=True)
    with how:
        axis = pick("Axis", "axis", (LINEAR, LOGARITHMIC), LINEAR)
    size = tuple(tensor.shape)
    try:
        with bar(f"The singular values of {shape(size)}") as report:
            found = kept(opened, ("spectrum", name), lambda: spectrum(tensor, report), _bytes)
    except SpectrumError as error:
        say(str(error))
        return
    drawn, numbers = widgets.side_by_side(7, 3)
    with drawn:
        st.markdown(f"`{name}`")
        values, others = found.values.tolist(), noise(found.shape, found.rms).tolist()
        spec = figure.singular_value_curves(
            values, others, found.edge, logarithmic=axis == LOGARITHMIC
        )
        st.vega_lite_chart(spec, height=HEIGHT, key="spectrum")
        count = len(figure.drawn_ranks(len(values)))
        drawn_of = f" Drawn are {count} of {len(values):,} ranks." if count < len(values) else ""
        st.caption(f"{EXPLAINED} {found.method}{drawn_of}")
    with numbers:
        facts(_facts(found))


def _bytes(found: Spectrum) -> int:
    return found.values.nbytes


def _facts(found: Spectrum) -> list[tuple[str, str]]:
    return [
        ("shape", shape(found.shape)),
        ("largest", three(float(found.values[0]))),
        ("smallest", three(float(found.values[-1]))),
        ("edge of noise", three(found.edge)),
        ("above the edge", f"{found.above_edge:,} of {len(found.values):,}"),
        ("stable rank", three(found.stable_rank)),
        ("half of the squares", f"{found.directions_for(0.5):,} directions"),
        ("90% of the squares", f"{found.directions_for(0.9):,} directions"),
    ]
