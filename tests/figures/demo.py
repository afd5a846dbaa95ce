"""Every chart once, to look at: `streamlit run tests/figures/demo.py`."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pandas as pd
import streamlit as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.figures.bars import bars
from explorer.figures.curves import Row, by_head, by_offset, waves
from explorer.figures.learning import held_out, loss
from explorer.figures.spectra import spectrum

st.set_page_config(layout="wide")
st.title("Figures")

STEPS = 400
table = pd.DataFrame({"step": range(0, 260, 2)})
noise = (table.step * 37 % 19) / 60
table["loss"] = 3.3 * (-table.step / 90).map(math.exp) + noise
measured = pd.DataFrame(
    {"step": range(0, 260, 20), "value": [1 - math.exp(-s / 80) for s in range(0, 260, 20)]}
)
rows: list[Row] = [
    {"position": p, "value": f(p / 5), "dimension": name}
    for name, f in (("dimension 4", math.sin), ("dimension 5", math.cos))
    for p in range(48)
]
offsets = [(o, math.cos(o / 4) - 0.4, math.cos(o / 4), math.cos(o / 4) + 0.3) for o in range(48)]

left, right = st.columns(2, gap="large")
left.vega_lite_chart(table, loss(STEPS, math.log(27)), height=240, key="loss")
right.vega_lite_chart(measured, held_out("exact match", STEPS, goal=0.99), height=240, key="out")
left.vega_lite_chart(waves(rows), height=240, key="waves")
right.vega_lite_chart(by_offset(offsets, "product"), height=240, key="offset")
biases = [(f"head {head}", o, -o / 2 ** (head + 1)) for head in range(4) for o in range(48)]
left.vega_lite_chart(by_head(biases, "bias"), height=240, key="by_head")
right.vega_lite_chart(
    bars(["␣the", "␣a", "<script>", "␣the", "שלום"], [0.61, 0.2, 0.1, 0.05, 0.002]),
    height=180,
    key="bars",
)
falling = [math.sqrt(64 - at) for at in range(64)]
left.vega_lite_chart(spectrum([12.0, 9.5, *falling[2:]], falling, 8.4), height=240, key="spectrum")
