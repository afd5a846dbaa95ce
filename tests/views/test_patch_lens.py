"""The lens and the map with interventions, and the patch that is dragged, without a browser."""

from typing import Any

import pytest

from explorer.components import board, events
from explorer.views.interventions import patch_lens
from tests import apps
from tests.apps import said, views
from tests.views.drawing import pasted, press, sent

EDITS = {"model": "letters", "text": "the cat and the hat", "edits": "1.1~p.d.0.a.2.dGhlIGhhdA.1"}
pytestmark = pytest.mark.usefixtures("small_models")


def test_the_lens_and_the_map_show_the_pass_with_the_interventions() -> None:
    at = apps.page("forward_pass/logit_lens", **EDITS)
    assert "1 intervention is active" in said(at)
    rows = (sent(at, key)[0]["rows"] for key in ("lens", "edited_lens"))
    for before, after in zip(*rows, strict=True):
        for (old, *_), (new, _, look) in zip(before["cells"], after["cells"], strict=True):
            assert (look == "changed") == (old != new)
    assert "run_edited" in pasted(at)
    assert "No interventions are active" in said(press(at, "clear"))
    at = apps.page("overview/overview", **EDITS)
    plain = apps.page("overview/overview", **{**EDITS, "edits": ""})
    assert all(sent(at, key) != sent(plain, key) for key in ("pass_map", "miniature"))
    at.segmented_control(key="shown_pass").set_value("Before").run()
    assert all(sent(at, key) == sent(plain, key) for key in ("pass_map", "miniature"))
    at.query_params["pair_view"] = "Products"
    at.switch_page("../../pages/attention/query_key.py").run()
    shown = "pass without it" in said(at), sent(at, "miniature")
    assert shown == (True, sent(plain, "miniature"))


def test_a_patch_is_drawn_in_place_of_the_text_and_its_reach_in_colour() -> None:
    lens = {"look": "Patch lens", "lens_from": "the hat"}
    at = apps.page("experiments/interventions", **{**EDITS, "edits": ""}, **lens)
    assert patch_lens.REPLACES in said(at)
    assert at.button(key="example_edit").label.startswith("Example: “␣hat” ")
    assert "at “␣cat” (2): patched from token 2 of “the hat”" in said(press(at, "example_edit"))
    first = [sent(at, key)[0]["seen"] for key in ("drag_from", "edited_lens")]
    assert ("The texts differ from “␣cat”" in said(at), first) == (True, [2, 2])
    assert patch_lens.REPLACES not in said(at)
    at = apps.page("experiments/interventions", **EDITS, **lens)
    assert "patched from token 1 of “the hat”" in said(at)
    rows = sent(at, "edited_lens")[0]["rows"]
    above, below = ([look == "muted" for _, _, look in row["cells"]] for row in rows)
    assert above == [place < 2 for place in range(len(above))]
    assert below == [place != 2 for place in range(len(above))]
    assert "edited_lens" not in views(press(at, "undo"))
    for changed, words in (
        ({"text": "the"}, patch_lens.SHORT),
        ({"model": "reviews"}, patch_lens.NO_WORDS),
        ({"lens_from": " "}, "There is nothing to read yet"),
        ({"edits": "1.1~p.d.0.a.2.dGhlIGhhdA.9"}, "That text has no token 9: it has"),
    ):
        assert words in said(apps.page("experiments/interventions", **{**EDITS, **lens, **changed}))


def test_only_cells_that_exist_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Any] = {}
    dropped: list[tuple[int, ...]] = []
    monkeypatch.setattr(board, "_VIEW", lambda **how: drawn.update(how))
    how: dict[str, Any] = {"carried": 3, "on_drop": lambda *at: dropped.append(at), "title": ""}
    rows = [board.Row("layer 0", [board.Cell("x")] * 2)]
    board.board([board.Column("a")] * 2, rows, key="b", corner="", sentence="", **how)
    for value in (None, "no", [0, 0], [1, 0, 0], [0, 3, 0], [0, 0, 2], [0, True, 0], [0, 2, 1]):
        monkeypatch.setattr(events, "event", lambda key, name, value=value: value)
        drawn["on_dropped_change"]()
    assert dropped == [(0, 2, 1)]
