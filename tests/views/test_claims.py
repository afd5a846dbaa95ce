"""Sentences that interpret numbers, each with a case in which it must not be said."""

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from explorer.analysis.circuit_faithfulness import CircuitPoint, smallest_in_words
from explorer.analysis.circuits.head_scores import HeadScores, _ranked, mover_clause, name_clause


def points(**shares: float) -> list[CircuitPoint]:
    """Circuits of e1, e2, … edges with these shares."""
    return [
        CircuitPoint(int(edges[1:]), share, 0.0, 0.0, 0.0, 0.0) for edges, share in shares.items()
    ]


CASES: list[tuple[Callable[..., Any], tuple[Any, ...], str, str]] = [
    (mover_clause, (1.13, 0.6), "name mover: it raises the logit .* by 1.13", "lowers|negative"),
    (
        mover_clause,
        (-2.7, 0.6),
        "^negative name mover: it lowers .* by 2.70, where 0.500",
        "raises",
    ),
    (mover_clause, (-2.7, 0.4), "^$", "mover"),
    (mover_clause, (0.4, 0.9), "^$", "mover"),
    (mover_clause, (math.nan, math.nan), "^$", "mover"),
    (name_clause, ("induction head", "weight", math.nan), "^$", "head"),
    (name_clause, ("copying head", "share", 0.6, 0.8), "^$", "head"),
    (name_clause, ("copying head", "share", 0.9, 0.8), "0.900, where 0.800 is enough", "0.500"),
    (
        smallest_in_words,
        (3, points(e1=0.2, e2=0.8, e5=0.95, e9=1.0)),
        "restores 90 % of the difference has 3 of 9 edges .33.3 %.*; all larger ones tried",
        "About|less",
    ),
    (
        smallest_in_words,
        (3, points(e1=0.2, e5=0.95, e7=0.4, e8=0.6, e9=1.0)),
        "tried, the smallest .* has 3 of 9 .*; of the larger ones, that of 8 edges restores less",
        "all larger",
    ),
    (smallest_in_words, (None, points(e1=0.2, e9=math.nan)), "None of these", "smallest"),
    (smallest_in_words, (9, points(e1=0.2, e9=1.0)), "has 9 of 9", "larger"),
]


@pytest.mark.parametrize(("words", "of", "said", "not_said"), CASES)
def test_a_sentence_says_what_was_measured(
    words: Callable[..., Any], of: tuple[Any, ...], said: str, not_said: str
) -> None:
    sentence = " ".join(str(words(*of)).split())
    assert re.search(said, sentence), sentence
    assert not re.search(not_said, sentence), sentence


def test_heads_without_a_value_have_no_rank_and_are_not_counted() -> None:
    values = torch.tensor([[0.5, math.nan], [0.9, 0.1]])
    ranked = _ranked("", values, 0, 0, "")
    assert (ranked.place, ranked.heads) == (2, 3)
    assert _ranked("", values, 0, 1, "").place is None
    assert HeadScores((), (), ()).names_in_words.startswith("No name: none of its scores")
