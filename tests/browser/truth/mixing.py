"""What the page Heads shows: the finder, similarity, rollout, and flow."""

import torch
from torch import Tensor

from tests.browser.truth.core import HEADS, SHAKESPEARE, apart
from tests.browser.truth.screen import Claim, cells, said
from tests.browser.visiting import Visitor

OWN = HEADS.index((SHAKESPEARE.layer, SHAKESPEARE.head))


def finder(visitor: Visitor) -> list[Claim]:
    ranked = r"Rank (\d+) of (\d+) by previous-token score, highest first: ([\d.]+)"
    place, of, value = said(visitor, ranked)
    every = torch.stack([SHAKESPEARE.at(*at).weights.diagonal(-1).mean() for at in HEADS])
    return [
        Claim("place", place, 1 + int((every > every[OWN]).sum())),
        Claim("heads", of, len(HEADS)),
        Claim("previous", value, float(every[OWN])),
        *cells(visitor, "found_head", SHAKESPEARE.weights, (5, 4)),
        *_strip(visitor, "best_heads", every, every.argsort(descending=True).tolist()),
    ]


def similarity(visitor: Visitor) -> list[Claim]:
    every = [SHAKESPEARE.at(*at).weights for at in HEADS]
    alike = torch.tensor([[1 - apart(one, two) for two in every] for one in every])
    near = [at for at in alike[OWN].argsort(descending=True).tolist() if at != OWN]
    strip = _strip(visitor, "nearest_heads", alike[OWN], near)
    return strip + cells(visitor, "similarity", alike, (6, 1), (0, 7))


def _strip(visitor: Visitor, key: str, values: Tensor, order: list[int]) -> list[Claim]:
    """The first six heads in their order, each with its number."""
    visitor.drawn(key)
    names = visitor.widget(key).locator("li .name").all_text_contents()
    shown = visitor.widget(key).locator("li .number").all_text_contents()
    assert names == ["layer {}, head {}".format(*HEADS[at]) for at in order[:6]]
    return [
        Claim(f"{key}: {name}", number, float(values[at]))
        for name, number, at in zip(names, shown, order, strict=False)
    ]


def plain(layer: int) -> Tensor:
    """The mean of the heads."""
    return torch.stack([SHAKESPEARE.at(layer, head).weights for head in range(4)]).mean(0)


def mixed(layer: int) -> Tensor:
    """Half the mean of the heads, half the token itself."""
    return (plain(layer) + torch.eye(len(plain(layer)))) / 2


def rollout(visitor: Visitor) -> list[Claim]:
    return cells(visitor, "rollout", mixed(1) @ mixed(0), (7, 6), (5, 0), (3, 3))


def flow(visitor: Visitor) -> list[Claim]:
    """Through two layers a way has one place between, so the narrower pipe of each way adds up."""
    flows = torch.minimum(mixed(1)[-1][:, None], mixed(0)).sum(0)
    measures = torch.stack([flows, (mixed(1) @ mixed(0))[-1], plain(1)[-1]])
    return cells(visitor, "flow", measures, (0, 1), (0, 6), (1, 2), (2, 6), step=1e-4)
