"""The lens and the map with interventions, and the patch that is dragged, without a browser."""

from typing import Any

import pytest

from explorer.components import board as boards
from explorer.components import events
from explorer.components.board import Cell, Column, Row, board
from explorer.views.interventions import patch_lens
from tests import apps
from tests.apps import said, views
from tests.views.drawing import pasted, press, sent

PATCH = "1.1~p.d.0.a.2.dGhlIGhhdA.1"  # of “the hat”, which is shorter
EDITS = {"model": "letters", "text": "the cat and the hat", "edits": PATCH}
pytestmark = pytest.mark.usefixtures("small_models")


def test_the_lens_shows_the_pass_before_and_after_the_interventions() -> None:
    at = apps.page("forward_pass/logit_lens", **EDITS)
    assert "1 intervention is active" in said(at)
    assert {"lens", "edited_lens"} <= views(at)
    for before, after in zip(
        *(sent(at, f"{a}lens")[0]["rows"] for a in ("", "edited_")), strict=True
    ):
        for (old, *_), (new, _, look) in zip(before["cells"], after["cells"], strict=True):
            assert (look == "changed") == (old != new)
    assert "run_edited" in pasted(at)
    assert "No interventions are active" in said(press(at, "clear"))
    assert views(at) == views(apps.page("forward_pass/logit_lens", model="letters"))
    at = apps.page("forward_pass/logit_lens", model="letters", edits="1.1~h.d.9.0.z")
    assert "No interventions are active; 1 cannot apply here" in said(at)


def test_the_map_shows_the_pass_with_the_interventions() -> None:
    at = apps.page("overview/overview", **EDITS)
    after = sent(at, "pass_map")
    assert after[0]["title"].endswith("with interventions")
    at.segmented_control(key="shown_pass").set_value("Before").run()
    plain = apps.page("overview/overview", **{**EDITS, "edits": ""})
    assert after != sent(at, "pass_map") == sent(plain, "pass_map")


def test_a_patch_is_drawn_as_a_third_grid_and_its_reach_in_colour() -> None:
    lens = {"look": "Patch lens", "lens_from": "the hat"}
    at = apps.page("experiments/interventions", **EDITS, **lens)
    assert "patched from token 1 of “the hat”" in said(at)
    rows = sent(at, "edited_lens")[0]["rows"]
    above, below = ([look == "muted" for _, _, look in row["cells"]] for row in rows)
    assert above == [place < 2 for place in range(len(above))]
    assert below == [place != 2 for place in range(len(above))]
    assert "can_change" in pasted(at)
    assert "edited_lens" not in views(press(at, "undo"))
    for changed, words in (
        ({"text": "the"}, patch_lens.SHORT),
        ({"model": "reviews"}, patch_lens.NO_WORDS),
        ({"lens_from": " "}, "There is nothing to read yet"),
        ({"edits": "1.1~p.d.0.a.2.dGhlIGhhdA.9"}, "That text has no token 9: it has"),
    ):
        at = apps.page("experiments/interventions", **{**EDITS, **lens, **changed})
        assert words in said(at), changed
        assert "edited_lens" not in views(at)


def test_only_cells_that_exist_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Any] = {}
    dropped: list[tuple[int, ...]] = []
    monkeypatch.setattr(boards, "_VIEW", lambda **how: drawn.update(how))
    how = dict.fromkeys(("key", "title", "corner", "sentence"), "")
    rows = [Row("layer 0", [Cell("x")] * 2)]
    board([Column("a")] * 2, rows, **how, carried=3, on_drop=lambda *at: dropped.append(at))
    for value in [None, "no", [0, 0], [1, 0, 0], [0, 3, 0], [0, 0, 2], [0, True, 0], [0, 2, 1]]:
        monkeypatch.setattr(events, "event", lambda key, name, value=value: value)
        drawn["on_dropped_change"]()
    assert dropped == [(0, 2, 1)]
