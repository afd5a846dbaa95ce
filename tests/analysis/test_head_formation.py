"""When a score rises for good, by hand."""

import math

import pytest
import torch

from explorer.analysis.head_formation import formation_step, formations


@pytest.mark.parametrize(
    ("scores", "step"),
    [
        ([(0, 0.1), (1, 0.1), (5, 0.45), (10, 0.8)], 5),
        ([(0, 0.9), (1, 0.1), (5, 0.5), (10, 0.8)], 5),
        ([(0, 0.8), (1, 0.8), (5, 0.8)], None),
        ([(0, 0.0), (1, 0.0), (5, 0.8)], None),
        ([(0, 0.1), (1, 0.5), (5, math.nan)], None),
        ([(0, math.nan), (1, 0.5), (5, 0.6)], 1),
    ],
)
def test_a_score_forms_where_it_stays_at_half_its_end(
    scores: list[tuple[int, float]], step: int | None
) -> None:
    assert formation_step(scores) == step


def test_each_head_has_its_highest_score_and_weak_ones_are_left_out() -> None:
    def at(first: float, second: float) -> dict[str, torch.Tensor]:
        return {
            "previous": torch.tensor([[first, 0.1]]),
            "induction": torch.tensor([[second, math.nan]]),
        }

    (found,) = formations({0: at(0.0, 0.0), 5: at(0.2, 0.6), 10: at(0.4, 0.7)})
    assert (found.layer, found.head, found.score, found.step) == (0, 0, "induction", 5)
    assert found.final == pytest.approx(0.7)
