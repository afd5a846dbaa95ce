"""Work piece by piece: what was made stays, and what takes long waits for a click."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.batched_passes import QUICK
from explorer.app.session import SESSION_KEY
from explorer.catalog.opened_model import open_model
from explorer.components.mounting import PageViews
from explorer.inference import results_cache
from explorer.views.shared import measurement
from explorer.views.shared.measurement import Report, is_started, measurements
from tests.apps import page, run
from tests.views.drawing import press

pytestmark = pytest.mark.usefixtures("small_models")


def test_the_pieces_that_were_made_stay_when_the_run_is_stopped() -> None:
    opened = open_model("letters")
    made: list[int] = []

    def make(at: int, _: Report) -> int:
        if at == 2 and len(made) == 2:
            raise StopIteration
        made.append(at)
        return at

    def ask() -> list[int] | None:
        keys = [("a test of pieces", at) for at in range(4)]
        return measurements(opened, "test", keys, make, cost=1, doing="Testing")

    with pytest.raises(StopIteration):
        ask()
    made.append(-1)
    assert ask() == [0, 1, 2, 3]
    assert made == [0, 1, -1, 2, 3]


def test_what_a_view_is_opened_for_starts_at_once_until_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And another of the same name starts again. What takes longer waits for a click, however
    little of it a stopped run has left; so does what was stopped, however short it is.
    """
    opened, started, said = open_model("letters"), measurement.StartedMeasurements(), list[str]()
    monkeypatch.setattr(measurement.st, "text", said.append)
    monkeypatch.setattr(measurement, "state_of", lambda _kind: started)
    monkeypatch.setattr(measurement.st, "button", lambda *_given, **_how: False)

    def ask(number: int, cost: int = 2 * QUICK) -> list[int] | None:
        keys, how = [("at once", number)], dict[str, Any](doing="Testing", at_once=True)
        return measurements(opened, "test", keys, lambda *_: number, cost=cost, **how)

    assert ask(1) == [1]
    assert ask(2, 11 * QUICK) is None
    started["test"] = opened.name, (("at once", 3),)
    assert not any(map(measurement.stop, ("test", "test"))), "a double click"
    assert (ask(3), ask(3, 1), ask(4)) == (None, None, [4])
    assert not is_started("another", "key", 2 * QUICK, "Testing:", QUICK // 9)
    assert said[-1] == "Testing: about 2 seconds."


CIRCUITS = {"text": "the cat", "corrupted": "the hat"}
LONG: dict[str, tuple[str, dict[str, str], str]] = {
    "heads": ("interventions", {"look": "Every head", "text": "the cat"}, "heads_off"),
    "cuts": ("interventions", {"look": "Faithfulness", "text": "the cat"}, "edges_cut"),
    "tracing": ("circuits", {**CIRCUITS, "circuit_view": "Causal tracing"}, "traced_values"),
    "path_patching": ("circuits", {**CIRCUITS, "circuit_view": "Path patching"}, "path_ends"),
}


@pytest.mark.parametrize("name", LONG)
def test_what_takes_long_waits_for_a_click(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again for another text."""
    monkeypatch.setattr(measurement, "QUICK", 1)
    results_cache.forget(open_model("letters"))
    path, address, key = LONG[name]
    at = page(f"experiments/{path}", model="letters", **address)
    assert key not in drawn(at)
    assert key in drawn(press(at, f"begin_{name}"))
    run(at.text_input(key="text").set_value("the rat"))
    assert key not in drawn(at)


def drawn(at: AppTest) -> set[str]:
    """The keys of all views and charts."""
    return {*at.session_state[SESSION_KEY].state(PageViews).drawn}
