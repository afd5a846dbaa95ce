"""The line view: `streamlit run tests/components/lines_demo.py`, ?show=words, cross or a size."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components import lines

st.set_page_config(layout="wide")
st.title("Lines")
show = st.query_params.get("show", "words")
torch.manual_seed(0)
words = ["<s>", "the", "small", "black", "cat", "sat", "on", "the", "mat", "and", "slept", "."]
french = ["<s>", "le", "petit", "chat", "noir", "dort", "sur", "le", "tapis", "</s>"]


def attention(heads: int, queries: int, keys: int) -> torch.Tensor:
    scores = 1.5 * torch.randn(heads, queries, keys)
    for head in range(heads):
        scores[head] += 5 * torch.eye(queries, keys).roll(head - 1, 1)
    return scores.softmax(-1)


if show == "words":
    lines(attention(4, 12, 12), words, words, key="l")
elif show == "cross":
    lines(attention(4, 10, 12), french, words, key="l", selected_head=1)
else:
    n = int(show)
    labels = [f"{words[i % 12]}{i}" for i in range(n)]
    lines(attention(12, n, n), labels, labels, key="l")
