"""What the page Heads shows: the finder, who looks alike, rollout, and flow."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.browser.truth import core
from tests.browser.truth.looking import a_cell
from tests.browser.truth.screen import Claim, cell, said
from tests.browser.visiting import Visitor

HEADS = [(layer, head) for layer in range(2) for head in range(4)]


def finder(visitor: Visitor) -> list[Claim]:
    place, of, value = said(visitor, r"(\d+) of (\d+) by previous, highest first: ([\d.]+)")
    every = [float(core.weights(*at).diagonal(-1).mean()) for at in HEADS]
    mine = every[HEADS.index((core.LAYER, core.HEAD))]
    best = sorted(range(len(HEADS)), key=lambda at: -every[at])[:6]
    return [
        Claim("place", place, 1 + sum(other > mine for other in every)),
        Claim("heads", of, len(HEADS)),
        Claim("previous", value, mine),
        a_cell(visitor, "found_head", core.weights(), 5, 4),
        *_strip(visitor, "best_heads", {HEADS[at]: every[at] for at in best}),
    ]


def _strip(visitor: Visitor, key: str, best: dict[tuple[int, int], float]) -> list[Claim]:
    """Heads in their order, each with its number."""
    visitor.drawn(key)
    view, made = visitor.widget(key), []
    names = view.locator("li .name").all_text_contents()
    shown = view.locator("li .number").all_text_contents()
    assert names == [f"layer {layer}, head {head}" for layer, head in best]
    for name, number, true in zip(names, shown, best.values(), strict=True):
        made.append(Claim(f"{key}: {name}", number, true))
    return made


def likeness(visitor: Visitor) -> list[Claim]:
    every = [core.weights(*at) for at in HEADS]
    alike = torch.tensor([[1 - core.apart(one, two) for two in every] for one in every])
    own = HEADS.index((core.LAYER, core.HEAD))
    near = [at for at in alike[own].argsort(descending=True).tolist() if at != own][:6]
    return [
        *_strip(visitor, "nearest_heads", {HEADS[at]: float(alike[own, at]) for at in near}),
        a_cell(visitor, "likeness", alike, 6, 1),
        a_cell(visitor, "likeness", alike, 0, 7),
    ]


def mixed(layer: int) -> Tensor:
    """Half the mean of the heads, half the token itself."""
    mean = torch.stack([core.weights(layer, head) for head in range(4)]).mean(0)
    return (mean + torch.eye(len(mean))) / 2


def rollout(visitor: Visitor) -> list[Claim]:
    shares = mixed(1) @ mixed(0)
    return [a_cell(visitor, "rollout", shares, *at) for at in [(7, 6), (5, 0), (3, 3)]]


def flow(visitor: Visitor) -> list[Claim]:
    """Through two layers a way has one place between, so the narrower pipe of each way adds up."""
    top, below = mixed(1)[-1], mixed(0)
    flows = torch.minimum(top[:, None], below).sum(0)
    plain = torch.stack([core.weights(1, head)[-1] for head in range(4)]).mean(0)
    measures = torch.stack([flows, (mixed(1) @ mixed(0))[-1], plain])
    made = []
    for at in [(0, 1), (0, 6), (1, 2), (2, 6)]:
        shown = cell(visitor, "flow", *at)
        made.append(Claim(f"flow, row {at[0]}, column {at[1]}", shown, float(measures[at]), 1e-4))
    return made
