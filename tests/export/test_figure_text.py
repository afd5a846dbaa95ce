"""A chart in words: its largest values, or where its lines begin and end."""

import math
from collections.abc import Mapping, Sequence

from explorer.export.figure_data import Value
from explorer.export.figure_text import figure_text

Table = Mapping[str, Sequence[Value]]
BARS = {"encoding": {"x": {"field": "p"}, "y": {"field": "token"}}}
CURVES = {
    "encoding": {"x": {"field": "step"}, "color": {"field": "run"}},
    "layer": [{"encoding": {"y": {"field": "loss"}}}],
}


def test_bars_say_their_three_largest() -> None:
    table: Table = {"token": ["be", "or", "not", "to"], "p": [0.5, 0.25, math.nan, 0.125]}
    said = "Next token. The largest p: be: 0.500; or: 0.250; to: 0.125."
    assert figure_text("Next token", table, BARS) == said


def test_curves_say_where_they_begin_and_end() -> None:
    table: Table = {"step": [10, 0, 0], "run": ["a", "a", "b"], "loss": [0.5, 3.0, 2.0]}
    said = "Loss. a: from 3.00 at step 0 to 0.500 at step 10; b: 2.00 at step 0."
    assert figure_text("Loss", table, CURVES) == said


def test_of_many_lines_three_are_said() -> None:
    table: Table = {"step": [0] * 5, "run": list("abcde"), "loss": [1.0] * 5}
    assert figure_text("Loss", table, CURVES).endswith("c: 1.00 at step 0; and 2 more.")


def test_a_table_without_a_chart_says_its_last_numbers() -> None:
    table: Table = {"part": ["a", "b"], "layer": [0, 1], "size": [-4, 3]}
    assert figure_text("Parts", table) == "Parts. The largest size: a: −4.00; b: 3.00."


def test_nothing_to_say_is_the_title_alone() -> None:
    tables: list[Table] = [{}, {"step": []}, {"token": ["a"], "p": [None]}]
    for table in tables:
        assert figure_text("Empty", table, BARS) == "Empty."
