"""The circuit on the picture of the pass: where its parts stand, what is said, what is chosen."""

import json
from dataclasses import replace

import torch
from playwright.sync_api import expect

from explorer.components import circuit_map, wire
from tests.browser.circuit_places import Drawn
from tests.components.conftest import OpenDemo, painted, told
from tests.components.invented_circuit import EDGES, invented


def test_a_message_has_what_is_no_number_as_none_and_the_other_text() -> None:
    shown = replace(invented(), edges=(*EDGES[:-1], replace(EDGES[-1], exact=float("nan"))))
    header, _ = wire.unpack(circuit_map.encode(shown, "circuit_map", "demo"))
    assert header["edges"][-1]["scores"] == [0.4, None, None]
    assert header["other"] == [[4, "Mary"]]


def test_an_edge_is_drawn_at_the_few_positions_that_have_most_of_it() -> None:
    assert circuit_map.drawn_places(torch.tensor([0.1, -1.0, 0.5, 0.19])) == [1, 2]
    assert circuit_map.drawn_places(torch.ones(9)) == list(range(circuit_map.MOST_EDGE_PLACES))
    assert circuit_map.drawn_places(torch.zeros(3)) == []
    assert circuit_map.drawn_places(torch.tensor([float("nan"), 1.0])) == [1]


def test_its_table_has_a_row_for_every_edge_and_its_picture_the_strongest() -> None:
    table = circuit_map.figure(invented(), "demo", 3)
    rows, drawn = [*table.rows], str(table.spec)
    assert rows[0] == ("1.2", "logits", "", 4.0, 0.5, 3.5, "5 to")
    assert rows[1] == ("MLP 0", "1.2", "v", 3.0, None, None, "4 John")
    assert len(rows) == len(EDGES)
    assert [f"'{word}'" in drawn for word in ("John", "q→5.0", "MLP 5")] == [True, True, False]


def test_what_is_drawn_says_its_scores_and_what_is_chosen_is_told(open_demo: OpenDemo) -> None:
    drawn, most = Drawn(open_demo("circuit_map")), len(EDGES)
    items, keys = drawn.items(), drawn.visitor.page.keyboard
    assert {"1.2@5", "port 1.2@4", "5.0@5", "0.1@4", "MLP 0@4", "MLP 5@5"} <= set(items)
    from_below = ("0.1@4", "MLP 0@4", "1.2@5", "5.0@5", "MLP 5@5", "logits@5")
    heights = [items[name]["y"] for name in from_below]
    assert heights == sorted(heights, reverse=True)
    assert len(set(heights)) == len(heights)
    assert items["port 1.2@4"]["y"] == items["1.2@5"]["y"], "a head is one row"
    assert items["port 1.2@4"]["x"] < items["1.2@5"]["x"]
    assert drawn.point("1.2@5") == (
        "Head 1.2 estimate +3.50 exact +3.25 of the difference 32.5 % "
        "2 drawn edges into it MLP 0 as v +3.00 0.1 as k +0.800 "
        "3 drawn edges out of it logits +4.00 5.0 q −2.00 MLP 5 −0.500"
    )
    drawn.visitor.away()
    drawn.canvas.focus()
    keys.press("ArrowRight")
    assert drawn.card() == (
        "1.2 → logits edge 1 of 8 estimate +4.00 spread over pairs 0.500 exact +3.50 "
        "of the difference 35.0 % at to (5) +3.60 elsewhere 10.0 %"
    )
    for _ in range(2):
        keys.press("ArrowRight")
    assert drawn.card().startswith("1.2 → 5.0 q edge 3 of 8, read as q estimate −2.00 exact not")
    expect(drawn.view.locator(".spoken")).to_have_text("1.2 → 5.0 q: estimate −2.00.")
    keys.press("Escape")
    names = []
    for _ in range(7):
        keys.press("ArrowUp")
        names.append(drawn.view.locator(".card .title").inner_text())
    heads = ["Head 0.1", "Feed-forward 0", "Head 1.2", "Head 5.0", "Feed-forward 5"]
    assert names == ["Embedding", *heads, "Output"]

    for key, folded in {
        "deep": "Folded: 27 of 30 layers with nothing drawn.",
        "long": "Folded: 3 of 6 layers and 86 of 90 tokens with nothing drawn.",
    }.items():
        view = drawn.visitor.widget(key)
        expect(view.locator(".notes")).to_have_text(folded)
        fits = "stage => stage.scrollWidth <= stage.clientWidth"
        assert view.locator(".stage").evaluate(fits), f"{key} does not fit"
    view = drawn.visitor.widget("class").locator(".circuit-map")  # it is over the whole text
    places = json.loads(view.get_attribute("data-place") or "[]")
    x = {(each["title"], each["at"]): each["x"] for each in places}
    assert x["1.2", 0] < x["logits", 0] < x["1.2", 5]

    drawn.click("1.2@5")
    told(drawn.visitor, f"({circuit_map.CircuitChoice(most, (1, 2))!r},)")
    drawn.visitor.away()
    expect(drawn.view.locator(".sentence")).to_contain_text("the difference of 9.00")
    assert drawn.card().startswith("Head 1.2"), "what is chosen stays, with other scores too"
    drawn.canvas.focus()
    for key in ("Escape", "ArrowRight", "Enter"):
        drawn.visitor.page.keyboard.press(key)
    told(drawn.visitor, f"({circuit_map.CircuitChoice(most, None, 0)!r},)")
    drawn.visitor.page.get_by_text("Another head").click()
    expect(drawn.view.locator(".card .title")).to_have_text("Head 5.0")
    drawn.view.locator("input").fill(str(circuit_map.counts(invented()).index(5)))  # fewer edges
    painted(drawn.visitor)
    assert "MLP 5@5" not in drawn.items()
    sentence = "of 1,234; each accounts for at least 1.00 of the difference of 10.0"
    expect(drawn.view.locator(".sentence")).to_have_text(sentence)
    told(drawn.visitor, "(CircuitChoice(count=5")
