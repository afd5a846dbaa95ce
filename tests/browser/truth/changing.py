"""What the page Change the pass shows: the maps and numbers, every head, and faithfulness."""

from __future__ import annotations

import re

import torch
from playwright.sync_api import expect
from torch import Tensor

from models import trace
from models.interventions import KeepCells, Scale
from tests.browser.truth import core
from tests.browser.truth.looking import a_cell
from tests.browser.truth.screen import Claim, facts, grid, said
from tests.browser.visiting import Visitor
from tests.served import wait_until

OFF = Scale(f"{core.SITE}.head_out", 0.0, core.HEAD)
DRAWS = 8


def maps(visitor: Visitor) -> list[Claim]:
    visitor.press("Ablate layer 1, head 2")
    expect(visitor.widget("edits_made").get_by_text("head 2 to zero")).to_be_visible()
    wait_until(lambda: facts(visitor)["KL here"] != "0 nats", "the numbers of the edited pass", 30)
    shown = facts(visitor)
    before, after = core.logits(), core.logits(OFF)
    best = int(before[-1].argmax())
    everywhere = [core.kl(p, q) for p, q in zip(before, after, strict=True)]
    return [
        Claim("KL here", shown["KL here"], everywhere[-1]),
        Claim("mean KL", shown["mean KL over positions"], sum(everywhere) / len(everywhere)),
        Claim("loss before", shown["loss before"], core.loss(before)),
        Claim("loss after", shown["loss after"], core.loss(after)),
        Claim("logit before", shown["watched logit before"], float(before[-1, best])),
        Claim("logit after", shown["watched logit after"], float(after[-1, best])),
    ]


def every_head(visitor: Visitor) -> list[Claim]:
    """One pass without each head, and how far it leads from the pass with all."""
    before = core.logits()[-1]
    found = torch.zeros(2, 4)
    for layer in range(2):
        for head in range(4):
            off = Scale(f"decoder.{layer}.self_attn.head_out", 0.0, head)
            found[layer, head] = core.kl(before, core.logits(off)[-1])
    order = found.flatten().argsort(descending=True).tolist()
    made = [a_cell(visitor, "heads_off", found, *at) for at in [(0, 0), (1, 2)]]
    for at, (*which, nats) in zip(order, grid(visitor, 1), strict=True):
        assert divmod(at, 4) == tuple(map(int, which))
        made.append(Claim(f"without layer and head {which}", nats, float(found.flatten()[at])))
    return made


def without(cuts: list[list[int]]) -> Tensor:
    """KL here when the cells of each of these cuts in the chosen head's map carry nothing."""
    left = torch.ones(len(cuts), 4, *core.weights().shape)
    for row, cells in enumerate(cuts):
        left[row, core.HEAD].view(-1)[cells] = 0.0
    texts, cut = core.ids().expand(len(cuts), -1), KeepCells(f"{core.SITE}.weights", left)
    logits = trace(core.model(), texts, sites=(), edits=[cut]).output[:, -1].double()
    return torch.tensor([core.kl(core.logits()[-1], each) for each in logits])


def faithfulness(visitor: Visitor) -> list[Claim]:
    """The strongest edges and those that the seed 0 draws, cut at once: what the chart tells."""
    flat = core.weights().flatten()
    there = flat.nonzero()[:, 0]
    order = there[flat[there].argsort(descending=True)].tolist()
    chance = torch.Generator().manual_seed(0)
    draws = [there[torch.randperm(len(there), generator=chance)].tolist() for _ in range(DRAWS)]
    (edges,) = said(visitor, r"There are (\d+) edges")
    made = [Claim("edges", edges, len(order))]
    for count, strongest, mean, least, most in _told(visitor):
        best, *drawn = without([each[:count] for each in (order, *draws)])
        random = torch.stack(drawn)
        made += [
            Claim(f"{count} strongest", strongest, float(best)),
            Claim(f"{count} at random", mean, float(random.mean())),
            Claim(f"{count} at random, least", least, float(random.min())),
            Claim(f"{count} at random, most", most, float(random.max())),
        ]
    assert len(made) > 4 * len(order).bit_length()
    return made


def _told(visitor: Visitor) -> list[tuple[int, str, str, str, str]]:
    """What the chart says at each of its points."""
    marks = visitor.widget("faithfulness").locator("[aria-label*='strongest: ']")
    wait_until(lambda: marks.count() > 0, "the points of the chart", 60)
    told = r"edges: ([\d,]+); strongest: (\S+); random: (\S+) \((\S+) to (\S+)\)"
    found = []
    for label in marks.evaluate_all("all => all.map(mark => mark.getAttribute('aria-label'))"):
        read = re.search(told, label)
        assert read is not None, label
        found.append((int(read[1].replace(",", "")), read[2], read[3], read[4], read[5]))
    return found
