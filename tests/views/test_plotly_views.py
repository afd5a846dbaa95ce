"""The views in plotly: closed at first, and what was left out of a chart is in its caption."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.runs.run import Run
from explorer.runs.spec import Status
from explorer.views.runs.run_comparison import comparison_columns, measured_runs
from tests import apps
from tests.apps import said
from tests.runs.making import tiny_run

pytestmark = pytest.mark.usefixtures("small_models")


VIEWS: dict[str, tuple[str, dict[str, str], str]] = {
    "position_surface": ("input/positions", {}, "The first 48 positions are shown"),
    "parameter_icicle": ("models/checkpoints", {}, "all are counted in one box"),
    "flow_sankey": ("attention/heads", {"side": "Flow", "part": "Encoder"}, "strongest bands"),
}


@pytest.mark.parametrize("key", VIEWS)
def test_a_chart_is_drawn_when_it_is_opened(key: str) -> None:
    path, address, caption = VIEWS[key]
    at = apps.page(path, model="translation", **address)
    assert not at.get("plotly_chart")
    at.session_state[key] = True
    at.run()
    assert not at.exception
    assert len(at.get("plotly_chart")) == 1
    assert caption in said(at)


def measured(run: Run, value: float) -> Run:
    """The run as if it had ended with this measurement."""
    status = Status("done", step=12, steps=12, measure="exact match", value=value)
    (run.folder / "status.json").write_text(json.dumps(status.to_dict()))
    return run


def test_runs_are_compared_by_the_settings_that_differ(tmp_path: Path) -> None:
    runs = [
        measured(tiny_run(tmp_path, lr=0.01, schedule="constant"), 0.25),
        measured(tiny_run(tmp_path, lr=0.02, schedule="cosine"), 0.75),
        tiny_run(tmp_path, lr=0.04),
    ]
    found = measured_runs([*runs, Run(tmp_path / "no run")])
    assert [each.name for each in found] == [run.name for run in runs[:2]]
    assert comparison_columns(found) == {
        "batch_size": [4, 4],
        "lr": [0.01, 0.02],
        "schedule": ["constant", "cosine"],
    }
    other = replace(found[0], spec=replace(found[0].spec, weights_seed=6))
    assert comparison_columns([found[0], other])["weights_seed"] == [5, 6]
