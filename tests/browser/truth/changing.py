"""What the pages Interventions and Compare show: other passes, and how far they lead."""

import re
from dataclasses import replace
from functools import partial
from urllib.parse import quote_plus

import torch
from playwright.sync_api import expect
from torch import Tensor

from explorer.runs.run import Run
from models import trace
from models.interventions import KeepCells, Scale
from tests.browser.truth.core import (
    CHECKPOINTS,
    HEADS,
    SHAKESPEARE,
    Case,
    apart,
    kl,
    tokenizer_in,
)
from tests.browser.truth.screen import Claim, cells, claims, facts, grid, said, stated
from tests.browser.visiting import Visitor
from tests.served import wait_until

DRAWS = 8
OTHER = replace(SHAKESPEARE, text="To have, or not to have")
ASKS_SENTENCE = f"other_text={quote_plus(OTHER.text)}"
ASKS_EDITS = "edits=1.1~h.d.0.1.z"
INDUCTION = Case(CHECKPOINTS / "induction", "abcdabcd", "decoder", 0, "self_attn", 1)
CONTROL = replace(INDUCTION, folder=CHECKPOINTS / "induction-control")
ASKS_MODEL = f"{INDUCTION.address}&other_model={CONTROL.folder.name}"
PAIRS = replace(SHAKESPEARE, text="the food was not so delicious")
OF_WORDS = Case(CHECKPOINTS / "reviews", PAIRS.text, "encoder", 0, "self_attn", 2)
ASKS_WORDS = f"{PAIRS.address}&other_model={OF_WORDS.folder.name}"
WORD, STEP = "cab", 5


def without(layer: int, head: int) -> Case:
    """The pass without what a head gives."""
    return replace(SHAKESPEARE, edits=(Scale(f"decoder.{layer}.self_attn.head_out", 0.0, head),))


def loss(logits: Tensor) -> float:
    """The mean of −ln p of every token that the text goes on with."""
    heard = SHAKESPEARE.ids[0, 1:, None]
    return -float(logits[:-1].log_softmax(-1).gather(-1, heard).mean())


def maps(visitor: Visitor) -> list[Claim]:
    visitor.press("Ablate layer 1, head 2")
    expect(visitor.widget("edits_made").get_by_text("head 2: zero ablation")).to_be_visible()
    wait_until(
        lambda: facts(visitor, "KL divergence")["KL divergence"] != "0 nats",
        "numbers of the edited pass",
        30,
    )
    before, after = SHAKESPEARE.logits, without(1, 2).logits
    best = int(before[-1].argmax())
    everywhere = [kl(p, q) for p, q in zip(before, after, strict=True)]
    true = {
        "KL divergence": everywhere[-1],
        "mean KL over positions": sum(everywhere) / len(everywhere),
        "loss per token before": loss(before),
        "loss per token after": loss(after),
        "tracked logit before": float(before[-1, best]),
        "tracked logit after": float(after[-1, best]),
    }
    return stated(visitor, true)


def every_head(visitor: Visitor) -> list[Claim]:
    """One pass without each head, and how far it leads from the pass with all."""
    found = torch.tensor([kl(SHAKESPEARE.answer, without(*at).answer) for at in HEADS])
    made = cells(visitor, "heads_off", found.view(2, 4), (0, 0), (1, 2))
    order = found.argsort(descending=True).tolist()
    for at, (*which, nats) in zip(order, grid(visitor, "layer", "nats"), strict=True):
        assert HEADS[at] == tuple(map(int, which))
        made.append(Claim(f"without layer and head {which}", nats, float(found[at])))
    return made


def cut(cuts: list[list[int]]) -> Tensor:
    """KL here when the cells of each of these cuts in the chosen head's map carry nothing."""
    left = torch.ones(len(cuts), 4, *SHAKESPEARE.weights.shape)
    for row, places in enumerate(cuts):
        left[row, SHAKESPEARE.head].view(-1)[places] = 0.0
    texts, keep = (
        SHAKESPEARE.ids.expand(len(cuts), -1),
        KeepCells(f"{SHAKESPEARE.site}.weights", left),
    )
    logits = trace(SHAKESPEARE.model, texts, sites=(), edits=[keep]).output[:, -1].double()
    return torch.tensor([kl(SHAKESPEARE.answer, each) for each in logits])


def faithfulness(visitor: Visitor) -> list[Claim]:
    """The strongest edges and those that the seed 0 draws, cut at once: what the chart tells."""
    flat = SHAKESPEARE.weights.flatten()
    there = flat.nonzero()[:, 0]
    order = there[flat[there].argsort(descending=True)].tolist()
    chance = torch.Generator().manual_seed(0)
    draws = [there[torch.randperm(len(there), generator=chance)].tolist() for _ in range(DRAWS)]
    (edges,) = said(visitor, r"There are (\d+) edges")
    made = [Claim("edges", edges, len(order))]
    for edges, *shown in _told(visitor):
        count = int(edges.replace(",", ""))
        nats = cut([each[:count] for each in (order, *draws)])
        random = nats[1:]
        extremes = {"least": random.min(), "most": random.max()}
        true = {"strongest": nats[0], "mean": random.mean(), **extremes}
        made += claims({f"{count} edges: {name}": true[name] for name in true}, shown)
    assert len(made) > 4 * len(order).bit_length()
    return made


def _told(visitor: Visitor) -> list[tuple[str, ...]]:
    """What the chart says at each of its points."""
    marks = visitor.widget("faithfulness").locator("[aria-label*='strongest: ']")
    wait_until(lambda: marks.count() > 0, "the points of the chart", 60)
    told = r"edges: ([\d,]+); strongest: (\S+); random: (\S+) \((\S+) to (\S+)\)"
    found = []
    for label in marks.evaluate_all("all => all.map(mark => mark.getAttribute('aria-label'))"):
        read = re.search(told, label)
        assert read is not None, label
        found.append(read.groups())
    return found


def compared(first: Case, second: Case, visitor: Visitor) -> list[Claim]:
    """Two maps, their difference, and how far they are apart."""
    (bits,) = said(visitor, r"divergence of their rows: ([\d.]+) bits")
    one, other, last = first.weights, second.weights, len(first.weights) - 1
    assert one.shape == other.shape
    return [
        Claim("bits apart", bits, apart(one, other)),
        *cells(visitor, "map_first", one, (last, 0)),
        *cells(visitor, "map_second", other, (last - 1, 2)),
        *cells(visitor, "map_difference", other - one, (last, last - 1)),
    ]


another_head = partial(compared, SHAKESPEARE, SHAKESPEARE.at(1, 3))
another_sentence = partial(compared, SHAKESPEARE, OTHER)
another_model = partial(compared, INDUCTION, CONTROL)
edits = partial(compared, SHAKESPEARE, without(0, 1))
"""A head below is taken away, which moves the queries and keys of the chosen one."""


def over_words(case: Case) -> Tensor:
    """The map between words: the weights on a word's tokens added, its own rows averaged.

    Every token but the special one at the start ends in the word that it is of.
    """
    tokens = tokenizer_in(case.folder).encode(case.text)
    ends = torch.tensor([token.end for token in tokens])
    word_ends = torch.tensor([0, *(found.end() for found in re.finditer(r"\S+", case.text))])
    words = torch.bucketize(ends, word_ends)
    member = torch.nn.functional.one_hot(words, len(word_ends)).double().mT
    return member / member.sum(-1, keepdim=True) @ case.weights @ member.mT


def over_groups(visitor: Visitor) -> list[Claim]:
    """A model of byte pairs beside one of words: the difference of both over words."""
    (bits,) = said(visitor, r"divergence of their rows: ([\d.]+) bits")
    one, other = PAIRS.weights, OF_WORDS.weights
    assert len(one) != len(other)
    first, second = over_words(PAIRS), over_words(OF_WORDS)
    last = len(first) - 1
    return [
        Claim("bits apart", bits, apart(first, second)),
        *cells(visitor, "map_first", one, (len(one) - 1, 0)),
        *cells(visitor, "map_second", other, (len(other) - 1, 2)),
        *cells(visitor, "map_difference", second - first, (last, last - 1), (1, 1), (last, last)),
    ]


def asks_step(run: Run) -> str:
    return f"model={run.name}&part=Encoder&layer=0&head=0&text={WORD}&other_step={STEP}"


def step(visitor: Visitor, run: Run) -> list[Claim]:
    """The finished model beside one of its snapshots."""
    finished = Case(run.folder / "checkpoint", WORD, "encoder", 0, "self_attn", 0)
    return compared(finished, replace(finished, folder=dict(run.snapshots())[STEP]), visitor)
