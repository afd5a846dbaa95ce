"""The induction circuit, known from the literature, is what is found in the shipped models.

A previous-token head writes at each letter which one came before it; an induction head finds, by
its keys, the place where that was the last letter of the text, and copies what stands there.
Source: In-context Learning and Induction Heads (Olsson et al. 2022).
"""

from functools import cache

import pytest
import torch
from torch import Tensor

from explorer.analysis.ablation_and_patching import exact_edges
from explorer.analysis.attribution_patching import attribute
from explorer.analysis.circuit_faithfulness import strongest_edges
from explorer.analysis.circuit_metrics import LOGIT_DIFFERENCE, Contrast
from explorer.analysis.circuits.circuit_scores import contrast_of
from explorer.analysis.circuits.head_scores import standard_scores
from explorer.analysis.circuits.pair_templates import make_pairs
from explorer.analysis.circuits.text_pairs import question_of
from explorer.analysis.wiring import Wiring, wiring_of
from explorer.catalog.opened_model import OpenModel, open_checkpoint
from explorer.catalog.shipped import SHIPPED

TWO_LAYERS = pytest.mark.parametrize("name", ["induction", "induction-learned"])
PAIRS = 16
STEPS = 5


@cache
def opened(name: str) -> OpenModel:
    return open_checkpoint(SHIPPED / name, name)


@cache
def contrasts(name: str) -> list[Contrast]:
    """Of pairs of the template, which the model with one layer reads as that with two."""
    solver = opened("induction")
    texts = make_pairs(solver, "Induction", PAIRS, 0).pairs
    pairs = question_of(solver, texts, LOGIT_DIFFERENCE).pairs
    return [contrast_of(opened(name), pair) for pair in pairs]


@cache
def estimates(name: str, steps: int) -> Tensor:
    """The mean over the pairs, (r, w)."""
    found = [attribute(each, steps).edges for each in contrasts(name)]
    return torch.stack([each for each in found if each is not None]).mean(0)


@cache
def exact(name: str) -> Tensor:
    """The mean over the pairs, (r, w)."""
    wiring = wiring_of(opened(name).config)
    edges = [(row, column) for row, column in wiring.is_edge.nonzero().tolist()]
    total = torch.zeros(wiring.is_edge.shape)
    for contrast in contrasts(name):
        for at, lost in exact_edges(contrast, edges):
            total[edges[at]] += lost / len(contrasts(name))
    return total


def between_heads(wiring: Wiring) -> Tensor:
    rows = torch.tensor([place.kind == "head" for place in wiring.rows])
    columns = torch.tensor([place.kind == "head" for place in wiring.columns])
    return wiring.is_edge & rows[:, None] & columns


@TWO_LAYERS
def test_the_strongest_edge_between_heads_is_the_k_composition_of_induction(name: str) -> None:
    """From the previous-token head to the keys of an induction head, as attention shows them.

    By the estimate and exactly. Both heads of the second layer are induction heads.
    """
    wiring, attention = wiring_of(opened(name).config), standard_scores(opened(name))
    induction = attention["induction"]
    previous_token_head = divmod(int(attention["previous"].argmax()), 2)
    assert (induction[1] > 0.5).all()
    assert (induction[0] < 0.1).all()
    for scores in (estimates(name, STEPS), exact(name)):
        strongest = int(strongest_edges(scores, between_heads(wiring))[0])
        row, column = divmod(strongest, len(wiring.columns))
        writer, reader = wiring.columns[column], wiring.rows[row]
        assert (writer.layer, writer.head) == previous_token_head
        assert (reader.layer, reader.reads) == (1, "k")
        if name == "induction":  # with learned positions both have as high scores, up to 2 %
            assert reader.head == int(induction[1].argmax())


@TWO_LAYERS
def test_at_the_clean_text_alone_the_gradient_misses_it(name: str) -> None:
    """Attention there has all its weight on one key, and its slope is next to nothing.

    So EAP gives the strongest edge less than a tenth of what it carries, EAP-IG about as much.
    """
    place = strongest_edges(exact(name), between_heads(wiring_of(opened(name).config)))[0]
    carried = float(exact(name).flatten()[place])
    assert carried > 3
    assert abs(float(estimates(name, 1).flatten()[place])) < 0.1 * carried
    assert 0.6 * carried < float(estimates(name, STEPS).flatten()[place]) < 1.6 * carried


def test_one_layer_has_no_edge_between_heads_and_no_answer() -> None:
    name = "induction-control"
    assert not between_heads(wiring_of(opened(name).config)).any()
    found = [attribute(each) for each in contrasts(name)]
    solved = [attribute(each) for each in contrasts("induction")]
    one, two = (sum(each.clean - each.corrupted for each in some) for some in (found, solved))
    assert abs(one) < 0.05 * two, "of as many pairs"
