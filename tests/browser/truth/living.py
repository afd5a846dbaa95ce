"""What the page Embedding space shows: places on the axes at every step, and nearest tokens."""

from typing import Any

import torch
from playwright.sync_api import Locator, expect
from torch import Tensor

from tests.browser.truth.core import Case
from tests.browser.truth.screen import Claim, grid, said
from tests.browser.visiting import Visitor

KEY = "embedding_points"
FRAMES = """plot => plot._transitionData._frames.filter(frame => /^[0-9]+$/.test(frame.name))
  .map(frame => ({step: frame.name, ...frame.data[1]}))"""
"""What the slider moves the tokens to, as plotly holds it."""
DRAWN = "plot => plot.data[3]"


def unit(vectors: Tensor) -> Tensor:
    return vectors / vectors.norm(dim=-1, keepdim=True)


def space(case: Case, visitor: Visitor) -> list[Claim]:
    """On the axes of the token embedding: the places, the variance, the nearest tokens."""
    stack = "decoder" if case.model.decoder is not None else "encoder"
    part = case.model.last_stack
    ids = case.written[0, :-1] if case.model.encoder and case.model.decoder else case.ids[0]
    table = part.embedding.weight.detach().double()
    scale = case.model.config.d_model**0.5 if case.model.config.scale_embedding else 1.0
    changed = case.model.config.positions in {"sinusoidal", "learned"}
    sites = [f"{stack}.0.resid_pre"] * changed
    sites += [f"{stack}.{layer}.resid_post" for layer in range(len(part.blocks))]
    states = [scale * table[ids], *(case.seen[site][0].double() for site in sites)]
    centre = unit(table).mean(0)
    _, sizes, directions = torch.linalg.svd(unit(table) - centre, full_matrices=False)
    axes = directions[:3].T
    axes = axes * axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    held = sizes.square() / sizes.square().sum()
    plot = plotly_in(visitor)
    frames = plot.evaluate(FRAMES)
    assert len(frames) == len(states)
    made = [
        of_place(f"step {frame['step']}", frame, unit(state) @ axes - centre @ axes)
        for frame, state in zip(frames, states, strict=True)
    ]
    made.append(of_place("drawn", plot.evaluate(DRAWN), unit(states[0]) @ axes - centre @ axes))
    (percent,) = said(visitor, r"They hold ([\d.]+) % of the variance")
    share = Claim("held by the axes", percent, 100 * float(held[:3].sum()))
    return [
        share,
        *(claim for each in made for claim in each),
        *by_step(case, visitor, table, states),
        *nearest(case, visitor, table, int(ids[-1])),
    ]


def plotly_in(visitor: Visitor) -> Locator:
    plot = visitor.widget(KEY).locator(".js-plotly-plot")
    expect(plot.locator("canvas").first).to_be_attached()
    return plot


def of_place(what: str, drawn: dict[str, Any], true: Tensor) -> list[Claim]:
    """The three numbers of the first and the last token."""
    made = []
    for place in (0, len(true) - 1):
        for axis, name in enumerate("xyz"):
            shown = f"{drawn[name][place]:.4f}".replace("-", "−")
            made.append(Claim(f"{what}: {name} of token {place}", shown, float(true[place, axis])))
    return made


def by_step(case: Case, visitor: Visitor, table: Tensor, states: list[Tensor]) -> list[Claim]:
    """The three nearest to the last token at every step in sight; first it is not its own."""
    made = []
    for step, (name, *cells) in enumerate(grid(visitor, "embedding", "after layer 0")):
        cosines = (unit(table) @ unit(states[step][-1])).nan_to_num(-1)
        best = cosines.topk(4).indices[0 if step else 1 :]
        for cell, at in zip(cells, best, strict=False):
            label, _, shown = cell.rpartition(" ")
            assert label.strip().removeprefix("␣") == case.label(int(at)).removeprefix("␣")
            made.append(Claim(f"{name}: {label}", shown, float(cosines[at])))
    assert len(made) == 3 * len(states)
    return made


def nearest(case: Case, visitor: Visitor, table: Tensor, token: int) -> list[Claim]:
    """The table of the last token, by the embedding."""
    cosines = unit(table) @ unit(table[token])
    cosines[token] = -1
    made = []
    lines = grid(visitor, "token", "cosine similarity")
    for (name, shown), at in zip(
        lines, cosines.nan_to_num(-1).topk(len(lines)).indices, strict=True
    ):
        assert name.removeprefix("␣") == case.label(int(at)).removeprefix("␣")
        made.append(Claim(f"nearest: {name}", shown, float(cosines[at])))
    return made
