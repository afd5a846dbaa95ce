"""The picture of the whole pass in a real browser: its keys, its motion, and odd passes."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from playwright.sync_api import expect

from explorer.analysis.information_flow import route
from explorer.components import wire
from explorer.components.pass_map import encode
from tests.browser.map_places import Drawn
from tests.components.conftest import OpenDemo
from tests.components.drawn_maps import (
    SELF,
    USUAL,
    every_share,
    opened,
    percent,
    told,
    whole,
)
from tests.components.flows import KINDS, made_up, numbered, of_kind, pass_of, picture
from tests.components.samples import STRANGE
from tests.served import wait_until

# ---- keys and motion --------------------------------------------------------------------------


def test_arrows_walk_through_the_answers_and_the_layers(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "words")
    keys = drawn.visitor.page.keyboard
    drawn.canvas.focus()
    for press, said in (
        ("ArrowRight", "What led to a5"),
        ("ArrowLeft", "What led to a4"),
        ("ArrowUp", "Layer 0 (0–1)"),
        ("ArrowUp", "Layer 1 (0–1)"),
        ("ArrowUp", "The answer."),
        ("ArrowDown", "Layer 1 (0–1)"),
        ("ArrowDown", "Layer 0 (0–1)"),
        ("ArrowDown", "What led to a4"),
        ("ArrowDown", "The answer."),
        ("ArrowUp", "What led to a4"),
        (" ", "Layer 0 (0–1)"),
        ("Escape", "What led to a4"),
    ):
        keys.press(press)
        expect(drawn.sentence).to_contain_text(said)
    told(drawn, [4, -1, -1, USUAL, -1, -1, *[-1] * 5])


def test_escape_lets_everything_go(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "words held")
    drawn.canvas.focus()
    drawn.visitor.page.keyboard.press("Escape")
    expect(drawn.sentence).to_contain_text("What led to a1")
    expect(drawn.view.locator(".card")).to_be_empty()
    told(drawn, [1, -1, -1, 0.05, -1, -1, *[-1] * 5])


def test_who_asks_for_less_motion_steps(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "words")
    expect(drawn.view.locator(".play")).to_be_hidden()
    expect(drawn.view.locator(".write")).to_be_hidden()
    before = drawn.visitor.picture("pass_map")
    for name, said in (("on", "Layer 0 (0–1)"), ("on", "Layer 1 (0–1)"), ("back", "Layer 0 (0–1)")):
        drawn.view.locator(f".controls .{name}").click()
        expect(drawn.sentence).to_have_text(said)
    assert drawn.visitor.picture("pass_map") != before


def moving(open_demo: OpenDemo, show: str) -> Drawn:
    """In a browser of its own that asks for no less motion."""
    drawn = opened(open_demo, show, width=1280)
    drawn.visitor.page.emulate_media(reduced_motion="no-preference")
    drawn.visitor.page.reload()
    return whole(drawn)


def test_it_plays_pauses_goes_on_and_ends_as_it_began(open_demo: OpenDemo) -> None:
    drawn = moving(open_demo, "words")
    before = drawn.visitor.picture("pass_map")
    play = drawn.view.locator(".play")
    play.click()
    expect(play).to_have_text("Pause")
    play.click()
    expect(play).to_have_text("Play")
    expect(drawn.sentence).to_have_text(re.compile(r"^Layer \d \(0–1\)$"))
    assert drawn.visitor.picture("pass_map") != before
    drawn.view.get_by_label("Speed").select_option("2 ×")
    play.click()
    expect(play).to_have_text("Pause")
    expect(play).to_have_text("Play")
    expect(drawn.sentence).to_have_text("What led to a5: p = 0.450")
    drawn.visitor.shows("pass_map", before)


def test_the_text_is_gone_on_with_by_its_likeliest_token(open_demo: OpenDemo) -> None:
    drawn = moving(open_demo, "words")
    write = drawn.view.locator(".write")
    write.click()
    expect(write).to_have_text("Stop")
    expect(drawn.visitor.page.get_by_text("told ('append', 0)")).to_be_visible()
    write.click()
    expect(write).to_have_text("Continue the text")
    expect(drawn.view.locator("button.option")).to_have_count(2)  # the third ends the text
    drawn.view.locator("button.option").nth(1).click()
    expect(drawn.visitor.page.get_by_text("told ('append', 1)")).to_be_visible()
    drawn.point(drawn.answer(1))
    expect(drawn.view.locator("button.option")).to_have_count(0)
    expect(moving(open_demo, "decoder").view.locator(".write")).to_be_hidden()


def test_the_wheel_opens_rows_where_there_are_many(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "deep")
    mouse = drawn.visitor.page.mouse
    before = levels(drawn)
    drawn.point(drawn.node(0, 10, 3))
    mouse.wheel(0, -400)
    wait_until(lambda: rows(drawn)[10] > 2 * (before[10] - before[11]), "a higher row 10")
    assert min(rows(drawn)) < before[10] - before[11]
    assert (levels(drawn)[0], levels(drawn)[-1]) == pytest.approx((before[0], before[-1]))
    mouse.wheel(0, 4000)
    wait_until(lambda: levels(drawn) == pytest.approx(before), "the rows as they were")


def levels(drawn: Drawn) -> list[float]:
    return [drawn.level(0, level) for level in range(31)]


def rows(drawn: Drawn) -> list[float]:
    return [below - above for below, above in pairwise(levels(drawn))]


# ---- odd passes -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["strange", "emoji"])
def test_strange_labels_stand_as_text(open_demo: OpenDemo, name: str) -> None:
    drawn = opened(open_demo, name)
    page = drawn.visitor.page
    assert page.title() == "demo_flow"
    expect(drawn.view.locator("img, script")).to_have_count(0)
    if name == "strange":
        assert f"Where {STRANGE[0]} goes" in drawn.point(drawn.token(0, 0))
        drawn.point(drawn.node(0, 1, 3))
        expect(drawn.sentence.locator("bdi").first).to_have_text(STRANGE[3])
    box = drawn.view.locator(".stage").bounding_box()
    assert box is not None
    assert box["width"] <= page.viewport_size["width"]  # type: ignore[index]


def test_what_has_no_share_says_so(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "unknown")
    said = drawn.point(drawn.node(0, 0, 2))
    assert said.startswith("small in layer 0: attention no value, feed-forward no value")
    assert "NaN" not in drawn.notes()


def test_one_token_one_layer_and_no_edges(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "one")
    assert drawn.notes() == "0 of 0 edges between two tokens have importance ≥ 0.500 %."
    assert drawn.point(drawn.token(0, 0)).startswith("Where <s> goes")
    assert drawn.point(drawn.answer(0)) == "What led to a0: p = 0.500"
    drawn.visitor.away()
    drawn.view.locator(".controls .on").click()
    expect(drawn.sentence).to_have_text("Layer 0")
    drawn = opened(open_demo, "nothing")
    assert drawn.notes() == "0 of 0 edges between two tokens have importance ≥ 0.500 %."
    assert drawn.point(drawn.node(0, 0, 1)).startswith(
        "the in layer 0: attention 0 %, feed-forward 0 %"
    )


def test_what_is_too_small_to_be_sent_is_said(open_demo: OpenDemo) -> None:
    flow = made_up(10, 90)
    shares = torch.stack([each.attended[SELF].keys for each in flow.stacks["decoder"]])
    most = 24_000
    least = float(shares.flatten().topk(most).values[-1])
    message = encode(picture(flow, {"decoder": numbered(90)}), "pass_map", "demo", 89, most=most)
    header, planes = wire.unpack(message)
    assert len(planes[f"{SELF}.keys"]) == 2 * most
    assert header["edges"] == every_share(flow) > most
    assert len(message) < 200_000
    drawn = opened(open_demo, "cut")
    sent = [
        replace(each, attended={SELF: replace(own, keys=own.keys.where(own.keys >= least, 0))})
        for each in flow.stacks["decoder"]
        for own in [each.attended[SELF]]
    ]
    walk = route(replace(flow, stacks={"decoder": tuple(sent)}), flow.starts[89])
    lost = percent(1 - float(walk.streams["decoder"][0].sum()))
    said = f" Shares under {percent(least)} are not followed: {lost} of the answer."
    assert drawn.notes().endswith(said)


def test_the_picture_follows_the_window_and_the_dark(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "words", width=1500, dark=True)
    wide, page = drawn.column(0, 5), drawn.visitor.page
    dark = drawn.visitor.picture("pass_map")
    page.set_viewport_size({"width": 1100, "height": 900})
    drawn.visitor.changed("pass_map", dark)
    assert drawn.column(0, 5) < wide
    assert drawn.point(drawn.answer(2)).startswith("What led to a2")
    page.set_viewport_size({"width": 1500, "height": 900})
    drawn.visitor.away()
    drawn.visitor.shows("pass_map", dark)
    light = opened(open_demo, "words", width=1500)
    assert light.visitor.picture("pass_map") != dark


def test_a_message_holds_what_a_pass_of_every_kind_has() -> None:
    for kind in KINDS:
        shown, forward = of_kind(kind), pass_of(kind)
        header, planes = wire.unpack(encode(shown, "pass_map", "demo", 0))
        assert [stack["layers"] for stack in header["stacks"]] == [
            len(blocks) for blocks in shown.flow.stacks.values()
        ]
        assert ("starts" in planes) is (forward.config.head == "classifier")
        assert header["hasLens"] is forward.config.head.endswith("language-model")
        assert (f"{header['stacks'][0]['name']}.mlp" in planes) is bool(forward.config.d_ff)
