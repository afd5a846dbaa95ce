"""The stages of one choice as aligned columns: logit, softmax, temperature, top-k, top-p, rest."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.sampling_stages import Stages
from explorer.catalog.opened_model import Opened
from explorer.components.board import Cell, Column, Row, Words, board
from explorer.inference.branches import Branches
from explorer.inference.continuation import rank, shown
from explorer.text.number_format import three
from explorer.views.decoding import branch_history
from explorer.views.shared import widgets
from models.generation import Sampling

SHOWN = 12
TOP_K, TOP_P = 2, 3
WORDS = Words(
    "token",
    "Each row is a token. Click one to force it: what follows is a branch.",
    "{row} · {column}: {value}",
    "Force {row} as the next token",
)


def show(
    opened: Opened,
    found: Stages,
    sampling: Sampling,
    branches: Branches,
    here: int,
    drawn: int | None,
) -> None:
    """The likeliest tokens, that which is drawn, and those of branches; all others in one row.

    They come behind node `here`.
    """
    written = branches.children[here]
    also = [*([] if drawn is None else [drawn]), *written]
    tokens = shown(found, SHOWN, also)
    name = opened.tokenizer.label
    marks = dict.fromkeys(written, "written")
    if drawn is not None:
        marks[drawn] = "drawn" if sampling.temperature else "next"
    rows = [_row(found, token, name(token), marks.get(token, "")) for token in tokens]
    if others := _others(found, tokens):
        rows.append(others)

    def force(place: int) -> None:
        branch_history.write(branches, [tokens[place]], forced=True, behind=here)

    with st.container(width=widgets.WIDEST):
        board(columns(found, sampling), rows, WORDS, key="stages", on_pick=force)


def columns(found: Stages, sampling: Sampling) -> list[Column]:
    """What each stage is called, and what it took away."""
    k = "off" if sampling.top_k is None else f"{sampling.top_k:,}"
    p = "off" if sampling.top_p is None else f"{sampling.top_p:g}"
    left = float(found.top_p.sum())
    return [
        Column("logit", "from the model"),
        Column("softmax", "sums to 1"),
        Column(f"temperature {sampling.temperature:g}", "sums to 1"),
        Column(f"top-k {k}", f"cuts {three(found.cut_by_k)}" if sampling.top_k else "cuts nothing"),
        Column(f"top-p {p}", f"cuts {three(found.cut_by_p)}" if sampling.top_p else "cuts nothing"),
        Column("renormalised", f"÷ {three(left)}"),
    ]


def cut_in_words(found: Stages, sampling: Sampling) -> str:
    """How many tokens each stage took away, with how much of the probability."""
    if sampling.temperature == 0:
        return (
            "Temperature 0 gives the likeliest everything, so top-k and top-p have nothing to cut."
        )
    may = int(found.logits.isfinite().sum())
    after_k = min(sampling.top_k or may, may)
    after_p = after_k if sampling.top_p is None else int((found.top_p > 0).sum())
    lines = []
    if sampling.top_k is not None:
        lines.append(f"top-k cuts {_tokens(may - after_k)} with {three(found.cut_by_k)}")
    if sampling.top_p is not None:
        lines.append(f"top-p cuts {_tokens(after_k - after_p)} with {three(found.cut_by_p)}")
    said = (
        f"Of {_tokens(may)} that may be written {'; '.join(lines)}" if lines else "Nothing is cut"
    )
    faint = after_p - found.left
    unlikely = f" and {faint:,} {'is' if faint == 1 else 'are'} too unlikely" if faint else ""
    return f"{said}: {_tokens(found.left)} can be drawn{unlikely}."


def _tokens(count: int) -> str:
    return f"{count:,} token" if count == 1 else f"{count:,} tokens"


def _row(found: Stages, token: int, name: str, mark: str) -> Row:
    logit = float(found.logits[token])
    may = logit > -torch.inf
    top = float(found.logits[found.logits.isfinite()].abs().max())
    place = rank(found, token)
    marks = [*([f"{place:,}."] if place > SHOWN else []), *([mark] if mark else [])]
    cells = [
        Cell(three(logit), logit / top if may and top else None, "" if may else "cut"),
        *_chances(found, torch.tensor([token])),
    ]
    how = "" if found.final[token] > 0 else "cut"
    return Row(name, cells, mark=" · ".join(marks), how=how, pickable=may)


def _others(found: Stages, tokens: Sequence[int]) -> Row | None:
    """All tokens that have no row of their own, added up."""
    others = torch.ones_like(found.logits, dtype=torch.bool)
    others[list(tokens)] = False
    count = int(others.sum())
    if not count:
        return None
    cells = [Cell("", None, "muted"), *_chances(found, others.nonzero()[:, 0])]
    return Row(f"{count:,} others", cells, how="muted", is_token=False)


def _chances(found: Stages, tokens: Tensor) -> list[Cell]:
    """One cell a stage; a bar is as long as the probability, cut is said where it happens."""
    values = [
        float(stage[tokens].sum())
        for stage in (found.plain, found.tempered, found.top_k, found.top_p, found.final)
    ]
    cells, before = list[Cell](), 0.0
    for place, value in enumerate(values):
        is_cut_here = place in (TOP_K, TOP_P) and before and not value
        text = "cut" if is_cut_here else three(value)
        cells.append(Cell(text, value or None, "" if value else "cut"))
        before = value
    return cells
