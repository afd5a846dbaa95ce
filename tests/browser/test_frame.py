"""The frame of every page: what is chosen is in sight, above the page."""

from __future__ import annotations

from tests.browser.conftest import Visit

BAR = ("text", "model", "part", "layer", "head")


def test_what_is_chosen_stands_in_one_row_at_the_top(visit: Visit) -> None:
    visitor = visit(width=1280, height=720)
    for address in ("/?model=translation", "/attention?model=long-gpt2", "/query_key?model=bert"):
        visitor.open(address)
        boxes = [visitor.widget(key).bounding_box() for key in BAR]
        places = [box for box in boxes if box is not None]
        assert len(places) == len(BAR), address
        assert len({round(box["y"] + box["height"]) for box in places}) == 1, address
        assert max(box["y"] + box["height"] for box in places) < 100, address
        assert places[0]["width"] >= 150, "of the sentence"
