"""The learning rate over the steps."""

import pytest

from explorer.charts.schedule_chart import MOST_POINTS, planned_rates, rate_table, schedule_chart
from models.training import SCHEDULES, TrainConfig, learning_rate


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_planned_rates_are_those_of_the_training(schedule: str) -> None:
    training = TrainConfig(steps=100_000, warmup=777, schedule=schedule)
    planned = planned_rates(training)
    assert len(planned) <= MOST_POINTS + 4
    assert planned[0][0] == 1
    assert planned[-1][0] == 100_000
    assert all(rate == learning_rate(training, step - 1) for step, rate in planned)
    assert max(rate for _, rate in planned) == pytest.approx(training.lr), "the top is kept"


def test_a_rate_that_a_run_has_had_stays_in_the_picture() -> None:
    table = rate_table([(step, 0.5) for step in range(1, 400)])
    assert table["step"][-1] == 399
    assert len(table["rate"]) <= MOST_POINTS + 1
    spec = schedule_chart(TrainConfig(steps=400, lr=0.1), max(table["rate"]))
    (highest,) = [each["value"] for each in spec["params"] if each["name"] == "y_high"]
    assert highest == 0.5
