"""The Data view of the Training page: the batches before anything is trained."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.views.training.data_view import length_bars
from tests import apps
from tests.apps import said
from tests.views.desk import Desk


@pytest.fixture
def desk(at_the_machine: None, desk: Desk) -> Desk:
    return desk


def page(**address: str) -> AppTest:
    return apps.page_alone("training/training", **{"training_view": "Data", **address})


def test_the_data_of_a_task_is_counted_as_the_form_says(desk: Desk, tmp_path: Path) -> None:
    at = page(task="negation")
    assert "868 of them are measured; 0 of these occur in the first 20 batches" in said(at)
    at.number_input(key="negation_batch_size").set_value(32).run()
    assert "first 20 batches (640 examples)" in said(at)
    assert "The first 4 of 32 examples of the first batch" in said(at)


def test_a_task_whose_text_is_missing_says_so(desk: Desk, tmp_path: Path) -> None:
    at = page(task="reviews")
    assert "The data appear once the task has its text." in said(at)


def test_lengths_stand_in_at_most_a_dozen_ranges() -> None:
    assert length_bars([3, 3, 5]) == {"3": 2, "4": 0, "5": 1}
    many = length_bars(list(range(1, 101)))
    assert len(many) <= 12
    assert sum(many.values()) == 100
    assert next(iter(many)) == "1–9"
