"""Curves of several runs at places that all share."""

from explorer.charts.overlaid_curves import MOST_PLACES, aligned, overlaid_curves
from explorer.charts.theme import LIGHT


def column(table: dict[str, list[object]], name: str) -> list[tuple[object, object]]:
    rows = zip(table["name"], table["x"], table["value"], strict=True)
    return [(x, value) for each, x, value in rows if each == name]


def test_the_last_value_stays_and_nothing_goes_on_after_the_end() -> None:
    table = aligned({"a": [(0.0, 1.0), (3.0, 2.0)], "b": [(2.0, 5.0)], "c": []}, "last")
    assert column(table, "a") == [(0, 1.0), (1, 1.0), (2, 1.0), (3, 2.0)]
    assert column(table, "b") == [(2, 5.0)]
    assert set(table["run"]) == {"r0", "r1"}


def test_a_long_loss_is_a_mean_of_neighbours_at_whole_steps() -> None:
    curve = [(float(step), float(step)) for step in range(1, 1 + 4 * MOST_PLACES)]
    found = column(aligned({"a": curve}, "mean"), "a")
    assert len(found) == MOST_PLACES
    assert found[0] == (4, 2.5)


def test_32_runs_have_32_looks() -> None:
    names = [f"lr {n}" for n in range(32)]
    spec = overlaid_curves(names, "step", "loss", LIGHT, is_stepped=False)
    encoding = spec["layer"][0]["encoding"]
    looks = zip(
        encoding["color"]["scale"]["range"],
        map(tuple, encoding["strokeDash"]["scale"]["range"]),
        strict=True,
    )
    assert len(set(looks)) == 32
    assert len(spec["layer"][1]["encoding"]["tooltip"]) == 33
