"""The stages of one choice as columns: logit, softmax, temperature, top-k, top-p, renormalized."""

from collections.abc import Sequence

import torch
from torch import Tensor

from explorer.catalog.open_model import OpenModel
from explorer.components.board import Cell, Column, Row, Words, board
from explorer.inference.branches import Branches
from explorer.inference.sampling_stages import SamplingStages
from explorer.text.number_format import three
from explorer.text.token_labels import candidate_text
from explorer.views.generation.branch_tree import append_tokens
from models.sampling import Sampling

SHOWN = 12
TOP_K, TOP_P = 2, 3
WORDS = Words(
    "token",
    "Each row is a token. Click one to force it as the next token, on its own branch.",
    "{row} · {column}: {value}",
    "Force {row} as the next token",
)


def draw_sampling_stages(
    opened: OpenModel,
    found: SamplingStages,
    sampling: Sampling,
    branches: Branches,
    here: int,
    sampled: int | None,
    before: Sequence[str],
) -> None:
    """The likeliest tokens after node `here`, the sampled one, those of branches; then the rest.

    `before` are the labels of the tokens up to there.
    """
    in_branches = branches.children[here]
    also = [*([] if sampled is None else [sampled]), *in_branches]
    tokens = found.likeliest(SHOWN, also)
    marks = dict.fromkeys(in_branches, "in a branch")
    if sampled is not None:
        marks[sampled] = "sampled" if sampling.temperature else "next"
    names = [candidate_text(opened.tokenizer.label(token), before) for token in tokens]
    rows = [
        _token_row(found, token, name, marks.get(token, ""))
        for token, name in zip(tokens, names, strict=True)
    ]
    if others := _other_tokens(found, tokens):
        rows.append(others)

    def force(place: int) -> None:
        append_tokens(branches, [tokens[place]], forced=True, behind=here)

    board(
        _columns(found, sampling),
        rows,
        WORDS,
        key="stages",
        title="Next token, stage by stage",
        on_pick=force,
    )


def _columns(found: SamplingStages, sampling: Sampling) -> list[Column]:
    """The name of each stage, and what it cuts."""
    k = "off" if sampling.top_k is None else f"{sampling.top_k:,}"
    p = "off" if sampling.top_p is None else f"{sampling.top_p:g}"
    left = float(found.top_p.sum())
    t = f"{sampling.temperature:g}"
    return [
        Column("logit", "output"),
        Column("softmax", "sums to 1"),
        Column(f"temperature {t}", "sums to 1", f"temp. {t}"),
        Column(f"top-k {k}", f"cuts {three(found.cut_by_k)}" if sampling.top_k else "cuts nothing"),
        Column(f"top-p {p}", f"cuts {three(found.cut_by_p)}" if sampling.top_p else "cuts nothing"),
        Column("renormalized", f"÷ {three(left)}", "renorm."),
    ]


def cut_summary(found: SamplingStages, sampling: Sampling) -> str:
    """How many tokens each stage cuts, and how much probability."""
    if sampling.temperature == 0:
        return (
            "At temperature 0 the likeliest token has probability 1, so top-k and top-p cut "
            "nothing."
        )
    allowed = int(found.logits.isfinite().sum())
    after_k = min(sampling.top_k or allowed, allowed)
    after_p = after_k if sampling.top_p is None else int((found.top_p > 0).sum())
    lines = []
    if sampling.top_k is not None:
        lines.append(f"top-k cuts {_tokens(allowed - after_k, found.cut_by_k)}")
    if sampling.top_p is not None:
        lines.append(f"top-p cuts {_tokens(after_k - after_p, found.cut_by_p)}")
    cuts = f"Of {_tokens(allowed)}, {'; '.join(lines)}" if lines else "Nothing is cut"
    zero = after_p - found.left
    rounded = f", {zero:,} {'rounds' if zero == 1 else 'round'} to probability 0" if zero else ""
    return f"{cuts}: {_tokens(found.left)} can be sampled{rounded}."


def _tokens(count: int, probability: float | None = None) -> str:
    tokens = f"{count:,} token" if count == 1 else f"{count:,} tokens"
    return tokens if probability is None else f"{tokens} (probability {three(probability)})"


def _token_row(found: SamplingStages, token: int, name: str, mark: str) -> Row:
    logit = float(found.logits[token])
    is_allowed = logit > -torch.inf
    top = float(found.logits[found.logits.isfinite()].abs().max())
    place = found.rank(token)
    marks = [*([f"{place:,}."] if place > SHOWN else []), *([mark] if mark else [])]
    bar = logit / top if is_allowed and top else None
    cells = [
        Cell(three(logit), bar, "" if is_allowed else "cut"),
        *_probability_cells(found, torch.tensor([token])),
    ]
    how = "" if found.final[token] > 0 else "cut"
    return Row(name, cells, mark=" · ".join(marks), how=how, pickable=is_allowed)


def _other_tokens(found: SamplingStages, tokens: Sequence[int]) -> Row | None:
    """The sum of all tokens without a row of their own."""
    others = torch.ones_like(found.logits, dtype=torch.bool)
    others[list(tokens)] = False
    count = int(others.sum())
    if not count:
        return None
    cells = [Cell("", None, "muted"), *_probability_cells(found, others.nonzero()[:, 0])]
    return Row(f"{count:,} others", cells, how="muted", is_token=False)


def _probability_cells(found: SamplingStages, tokens: Tensor) -> list[Cell]:
    """One cell per stage; a bar is as long as the probability, a cut is named where it happens."""
    stages = (found.plain, found.tempered, found.top_k, found.top_p, found.final)
    cells, before = list[Cell](), 0.0
    for place, value in enumerate(float(stage[tokens].sum()) for stage in stages):
        is_cut_here = place in (TOP_K, TOP_P) and before and not value
        text = "cut" if is_cut_here else three(value)
        cells.append(Cell(text, value or None, "" if value else "cut"))
        before = value
    return cells
