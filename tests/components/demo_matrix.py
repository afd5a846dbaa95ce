"""Matrices: ?show=words, strange, scores, exact, mask, scaled, held …, or a number of tokens."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import streamlit as st
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components import matrix
from tests.components.samples import STRANGE, WORDS, attention, causal, heads

st.set_page_config(layout="wide")
st.title("Matrix")
show = st.query_params.get("show", "words")
n = len(WORDS)
scores = 3 * torch.randn(n, n, generator=torch.Generator().manual_seed(1))

if show == "words":
    seed = st.slider("Seed", 0, 9, 0, key="seed")
    matrix(attention(n, seed), WORDS, WORDS, key="m", allowed=causal(n))
elif show == "strange":
    matrix(attention(len(STRANGE)), STRANGE, STRANGE, key="m")
elif show == "difference":
    matrix(
        scores[:9],
        WORDS[:9],
        WORDS,
        key="m",
        scale="diverging",
        unit="difference",
        sentence="{row} on {column}: {value}",
    )
elif show == "scores":
    masked = scores.masked_fill(~causal(n), -torch.inf)
    matrix(masked, WORDS, WORDS, key="m", scale="diverging", unit="score")
elif show == "exact":
    values = torch.tensor([[3000.0, 0.3], [0.05, 3e-8]])
    places = [[3, 4], [12, 14]]
    matrix(values, "ab", "cd", key="m", scale="diverging", exact=True, places=places)
elif show == "mask":
    matrix(causal(n), WORDS, WORDS, key="m", scale="mask", unit="mask")
elif show == "narrow":
    columns = st.columns(3, gap="medium")
    for place, column, scale in zip("abc", columns, ("mask", "sequential", "mask"), strict=True):
        with column:
            values = causal(n) if scale == "mask" else attention(n)
            matrix(values, WORDS, WORDS, key=f"m{place}", scale=scale, height=380)
elif show == "scaled":
    values = torch.tensor([[0.8, 0.0], [0.1, 0.05]])
    ways: list[dict[str, Any]] = [{}, {"scaling": "row"}, {"scaling": "column"}, {"log": True}]
    for at, how in enumerate(ways):
        matrix(values, ["a", "b"], ["c", "d"], key=f"m{at}", height=190, **how)
elif show == "cut":
    cut = torch.zeros(n, n, dtype=torch.bool)
    cut[0, 1] = True

    def asked(column: int) -> None:
        st.session_state["asked"] = f"asked for column {column}"

    matrix(attention(n), WORDS, WORDS, key="m", hidden=[2], cut=cut, on_hide=asked)
    st.text(st.session_state.get("asked", ""))
elif show == "held":
    kept = st.session_state.setdefault("kept", {"cell": (3, 1), "times": 0})

    def hold(cell: tuple[int, int] | None) -> None:
        kept.update(cell=cell, times=kept["times"] + 1)

    matrix(attention(n), WORDS, WORDS, key="m", held=kept["cell"], on_hold=hold)
    st.text(f"told {kept['times']} times: {kept['cell']}")
    if st.button("Hold the first"):
        kept["cell"] = (0, 0)
        st.rerun()
elif show == "rectangle":
    matrix(heads(5, 40), WORDS[:5], [f"token{i}" for i in range(40)], key="m")
else:
    size = int(show)
    labels = [f"{WORDS[i % n]}{i}" for i in range(size)]
    matrix(attention(size), labels, labels, key="m", allowed=causal(size))
