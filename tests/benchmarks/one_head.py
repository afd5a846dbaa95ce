"""The page that is measured: one head of an encoder over 128 tokens, another at every run."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components import matrix

TOKENS = [f"token{i}" for i in range(128)]


def weights(head: int) -> torch.Tensor:
    """Attention without any pattern, which is the hardest to send."""
    random = torch.Generator().manual_seed(head)
    return (2 * torch.randn(128, 128, generator=random)).softmax(-1)


if __name__ == "__main__":
    head = st.session_state["head"] = st.session_state.get("head", -1) + 1
    matrix(weights(head), TOKENS, TOKENS, key="matrix")
