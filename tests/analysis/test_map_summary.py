"""The caption of a map says what is true of it, also where little or nothing is attended to."""

import math

import torch

from explorer.analysis.map_summary import summary_of

CELL = "{row} attends to {column}: {value}"
TEXT = ("the", "cat", "the", "hat")
CAUSAL = torch.ones(4, 4, dtype=torch.bool).tril()
WEIGHTS = torch.tensor(
    [[1.0, 0, 0, 0], [0.25, 0.75, 0, 0], [0.5, 0.25, 0.25, 0], [0, 0.125, 0.5, 0.375]]
)
OF_3 = "the 3 rows with more than one visible key"


def summary(weights: torch.Tensor, allowed: torch.Tensor = CAUSAL) -> str:
    return summary_of(weights, allowed, TEXT, TEXT, CELL)


def test_equal_labels_are_told_apart_by_their_places() -> None:
    swapped = WEIGHTS[:, [0, 2, 1, 3]]
    assert summary(swapped, torch.ones_like(CAUSAL)).startswith(
        "“the” (0) attends to “the” (0): 1.00, the largest weight. “the” (0), the first key, gets"
    )
    assert summary(WEIGHTS) == (
        "“cat” (1) attends to “cat” (1): 0.750, the largest weight. “the” (0), the first key, "
        f"gets 25.0 % of the weight of {OF_3}."
    )


def test_where_nothing_has_weight_no_cell_is_the_largest() -> None:
    assert summary(torch.zeros(4, 4)) == f"Every weight of {OF_3} is 0."
    window = CAUSAL & torch.eye(4, dtype=torch.bool)
    window[3] = CAUSAL[3]
    alone = "Every weight of the row with more than one visible key is 0."
    assert summary(torch.zeros(4, 4), window) == alone
    assert summary(WEIGHTS, torch.eye(4, dtype=torch.bool)) == "", "no row has a choice"


def test_a_row_of_zeros_adds_no_weight() -> None:
    cut = WEIGHTS.clone()
    cut[3] = 0
    assert f"gets 37.5 % of the weight of {OF_3}." in summary(cut)


def test_a_masked_first_key_is_said_to_be_masked() -> None:
    last = CAUSAL.clone()
    last[3, 0] = False
    assert summary(WEIGHTS, last).endswith(f"25.0 % of the weight of {OF_3}, 1 of which masks it.")
    last[2, 0] = False
    weights = WEIGHTS.clone()
    weights[2] = torch.tensor([0, 0.5, 0.5, 0])
    assert summary(weights, last).endswith(f" of the weight of {OF_3}, 2 of which mask it.")
    last[1, 0] = False
    assert summary(weights, last).endswith(
        ". “the” (0), the first key, is masked in the 2 rows with more than one visible key."
    )


def test_equal_largest_weights_are_counted() -> None:
    even = CAUSAL / CAUSAL.sum(-1, keepdim=True)
    assert ": 0.500, the largest weight, which another cell has too. " in summary(even)
    even[1] = torch.tensor([0, 1, 0, 0])
    assert ": 1.00, the largest weight. " in summary(even)
    even[2:] = 0
    even[2, :2] = even[3, 1] = 1
    assert ": 1.00, the largest weight, which 3 other cells have too. " in summary(even)


def test_rows_that_are_not_finite_are_left_out_in_words() -> None:
    broken = WEIGHTS.clone()
    broken[1] = math.nan
    assert summary(broken).startswith("“the” (2) attends to “the” (0): 0.500, the largest weight,")
    assert summary(broken).endswith(
        "of the weight of the 2 rows with more than one visible key and finite weights."
    )
    assert summary(torch.full((4, 4), math.nan)) == ""
