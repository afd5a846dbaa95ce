"""The pass in small in a real browser: its parts and its layers."""

import torch
from playwright.sync_api import expect

from explorer.analysis.information_flow import route
from explorer.components import miniature as drawing
from explorer.components import wire
from tests.browser.visiting import Visitor
from tests.components.conftest import OpenDemo, told
from tests.components.flows import KINDS, made_up, nothing_across, of_kind

KEYS = ("both", "deep_encoder", "mean", "no_head", "one", "nothing")
PARTS = ["Answer", "Attention", "Tokens"]
MARGIN, HEIGHT = 10, 190
"""Pixels above the last layer and below the first, and of all."""


def click(visitor: Visitor, level: float) -> None:
    """At this share of the thirty layers, from below."""
    canvas = visitor.widget("deep").locator("canvas")
    y = HEIGHT - MARGIN - level * (HEIGHT - 2 * MARGIN)
    canvas.click(position={"x": 40, "y": y})


def test_the_part_of_the_page_is_lit_and_each_part_and_layer_is_a_way(open_demo: OpenDemo) -> None:
    visitor = open_demo("miniature")
    view = visitor.widget("words")
    parts, current = view.get_by_role("button"), view.locator("[aria-current=true]")
    expect(parts).to_have_text(PARTS)
    expect(current).to_have_text(["Attention"])
    for name in reversed(PARTS):
        parts.get_by_text(name, exact=True).click()
        told(visitor, f"{(name.lower(), None)}")
    before = visitor.picture("words")
    visitor.page.get_by_role("button", name="Elsewhere").click()
    expect(current).to_have_text(["Answer"])
    visitor.changed("words", before)
    for layer in (0, 17, 29):
        click(visitor, (layer + 0.5) / 30)
        told(visitor, f"{('layer', layer)}")
    for level, end in ((-0.03, "tokens"), (1.03, "answer")):
        click(visitor, level)
        told(visitor, f"{(end, None)}")
    pictures = [visitor.picture(key) for key in KEYS]
    assert len(set(pictures)) == len(KEYS), "two kinds of model look the same"
    for key in KEYS:
        expect(visitor.widget(key).locator("canvas")).to_have_attribute("aria-label", "demo")


def test_what_is_sent_are_the_streams_the_blocks_and_the_strong_edges() -> None:
    """Also where there is no edge, and of one token."""
    for flow in [*(of_kind(kind).flow for kind in KINDS), nothing_across(3), made_up(1, 1)]:
        traced = route(flow, flow.starts[-1])
        header, planes = wire.unpack(drawing.encode(flow, traced, "m", "", [("a", "A")]))
        for stack in header["stacks"]:
            name = stack["name"]
            for plane, true in (("streams", traced.streams), ("mlp", traced.mlp)):
                codes = torch.tensor(list(planes[f"{name}.{plane}"])).reshape(true[name].shape)
                assert (codes / 255 - true[name]).abs().max() <= 0.5 / 255 + 1e-9
        strong = 0
        for part, edges in traced.edges.items():
            seen = edges >= drawing.LEAST_IMPORTANCE
            strong += int(seen.sum())
            if part.endswith("self_attn"):
                strong -= int(seen.diagonal(dim1=1, dim2=2).sum())
        assert len(header["edges"]) == strong
        sizes = [edge[-1] for edge in header["edges"]]
        assert sizes == sorted(sizes)
