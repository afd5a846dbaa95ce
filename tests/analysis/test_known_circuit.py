"""The induction circuit, known from the literature, is what is found in the shipped models.

A previous-token head writes at each letter which one came before it; an induction head finds, by
its keys, the place where that was the last letter of the text, and copies what stands there. In the
corrupted text two letters of the block have changed places, the last one's first copy among them,
so what followed it is another letter; nothing else differs, and no answer changes its place.
Source: In-context Learning and Induction Heads (Olsson et al. 2022).
"""

from functools import partial

import pytest
import torch
from torch import Tensor

from explorer.analysis.ablation_and_patching import exact_edges
from explorer.analysis.attribution_patching import attribute
from explorer.analysis.circuit_faithfulness import strongest_edges
from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.circuits.head_scores import standard_scores
from explorer.analysis.wiring import wiring_of
from explorer.catalog.opened_model import OpenModel, open_model

PERIODS, STEPS = range(4, 12), 5
LETTERS = torch.arange(26)


def contrasts(model: OpenModel) -> list[Contrast]:
    """`<s>`, a block of different letters, and one of them again: which letter followed it?"""
    first, start = model.tokenizer.id_of("a"), 1
    random = torch.Generator().manual_seed(0)
    found = []
    for period in PERIODS:
        block = LETTERS[torch.randperm(26, generator=random)[:period]] + first
        one, other = sorted(torch.randperm(period - 1, generator=random)[:2].tolist())
        if other == one + 1:
            one, other = 0, period - 2  # else an answer would be among the changed letters
        swapped = block.clone()
        swapped[[one, other]] = block[[other, one]]
        asked = int(block[one])
        clean, corrupted = (
            torch.tensor([[start, *each.tolist(), asked]]) for each in (block, swapped)
        )
        outcome = partial(logit_difference, int(block[one + 1]), int(block[other + 1]))
        found.append(Contrast(model.model, clean, corrupted, period + 1, outcome))
    return found


def logit_difference(answer: int, against: int, logits: Tensor) -> Tensor:
    return logits[:, answer] - logits[:, against]


def mean_estimates(pairs: list[Contrast], steps: int) -> Tensor:
    """(r, w)."""
    found = [attribute(each, steps).edges for each in pairs]
    return torch.stack([each for each in found if each is not None]).mean(0)


@pytest.mark.parametrize("name", ["induction", "induction-learned"])
def test_the_strongest_edge_between_heads_is_the_k_composition_of_induction(name: str) -> None:
    """From the previous-token head to the keys of an induction head, as attention shows them.

    By the estimate and exactly. At the clean text alone attention has all its weight on one key,
    so its slope is next to nothing, and EAP misses what EAP-IG finds.
    """
    model = open_model(name)
    wiring, attention, pairs = wiring_of(model.config), standard_scores(model), contrasts(model)
    previous_token_head = divmod(int(attention["previous"].argmax()), 2)
    rows = torch.tensor([place.kind == "head" for place in wiring.rows])
    columns = torch.tensor([place.kind == "head" for place in wiring.columns])
    between_heads = wiring.is_edge & rows[:, None] & columns
    edges = [(row, column) for row, column in between_heads.nonzero().tolist()]
    exact = torch.zeros(wiring.is_edge.shape)
    for contrast in pairs:
        for at, lost in exact_edges(contrast, edges):
            exact[edges[at]] += lost / len(pairs)
    estimates = mean_estimates(pairs, STEPS)
    for scores in (estimates, exact):
        row, column = divmod(int(strongest_edges(scores, between_heads)[0]), len(wiring.columns))
        writer, reader = wiring.columns[column], wiring.rows[row]
        assert (writer.layer, writer.head) == previous_token_head
        assert (reader.layer, reader.reads) == (1, "k")
    carried = float(exact[row, column])
    assert carried > 3
    assert abs(float(mean_estimates(pairs, 1)[row, column])) < 0.1 * carried
    assert 0.6 * carried < float(estimates[row, column]) < 1.6 * carried


def test_one_layer_has_no_answer() -> None:
    one, two = (
        sum(each.clean - each.corrupted for each in map(attribute, contrasts(open_model(name))))
        for name in ("induction-control", "induction")
    )
    assert abs(one) < 0.05 * two, "of as many pairs"
