"""Matrices to look at and to test: `streamlit run tests/components/matrix_demo.py`.

The address chooses which: ?show=words (default), strange, diverging, mask, scores, or a size.
"""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components import matrix

st.set_page_config(layout="wide")
st.title("Matrix")
show = st.query_params.get("show", "words")
torch.manual_seed(0)


def causal(n: int) -> torch.Tensor:
    return torch.ones(n, n).tril().bool()


def attention(n: int, *, sharp: float = 2.0) -> torch.Tensor:
    scores = sharp * torch.randn(n, n) + 4 * torch.eye(n).roll(-1, 1)
    return scores.masked_fill(~causal(n), -torch.inf).softmax(-1)


words = ["<s>", "the", "small", "black", "cat", "sat", "on", "the", "mat", "and", "slept", "."]
strange = [
    "<script>alert(1)</script>",
    "👩‍👩‍👧‍👦",
    "שלום",
    "مرحبا بالعالم",
    "a\tb\n",
    "x" * 90,
    "\u202eevil",
]
if show == "words":
    matrix(attention(len(words)), words, words, key="m", allowed=causal(len(words)))
elif show == "strange":
    matrix(torch.rand(7, 7).softmax(-1), strange, strange, key="m")
elif show == "diverging":
    matrix(
        torch.randn(9, 12) * 3,
        words[:9],
        words,
        key="m",
        scale="diverging",
        unit="difference",
        sentence="{row} on {column}: {value}",
    )
elif show == "scores":
    scores = (3 * torch.randn(12, 12)).masked_fill(~causal(12), -torch.inf)
    matrix(scores, words, words, key="m", scale="diverging", unit="score")
elif show == "mask":
    matrix(causal(12), words, words, key="m", scale="mask", unit="mask")
else:
    n = int(show)
    labels = [f"{words[i % 12]}{i}" for i in range(n)]
    matrix(attention(n), labels, labels, key="m", allowed=causal(n))
