"""The page “Embedding space” in a browser: the slider and the button move the tokens."""

from playwright.sync_api import expect

from tests.browser.truth.living import DRAWN, FRAMES, plotly_in
from tests.browser.visiting import Visitor
from tests.served import wait_until


def test_play_moves_the_tokens_through_every_layer(visitor: Visitor) -> None:
    visitor.open("/embedding_space?model=shakespeare")
    plot = plotly_in(visitor)
    expect(plot.get_by_text("WebGL is not supported")).to_have_count(0)
    frames = plot.evaluate(FRAMES)
    assert plot.evaluate(DRAWN)["x"] == frames[0]["x"] != frames[-1]["x"]
    plot.get_by_text("Play", exact=True).click()
    wait_until(lambda: plot.evaluate(DRAWN)["x"] == frames[-1]["x"], "the last layer", 60)
    expect(plot.get_by_text("after layer 1: these axes hold")).to_be_visible()


def test_the_slider_puts_the_tokens_after_a_layer(visitor: Visitor) -> None:
    visitor.open("/embedding_space?model=shakespeare&space_of=Residual+stream")
    plot = plotly_in(visitor)
    frames = plot.evaluate(FRAMES)
    rail = plot.locator(".slider-rail-touch-rect").bounding_box()
    assert rail is not None
    visitor.page.mouse.click(rail["x"] + rail["width"] - 2, rail["y"] + 8)
    wait_until(lambda: plot.evaluate(DRAWN)["x"] == frames[-1]["x"], "the last layer", 60)
    expect(plot.get_by_text("after layer 1: these axes hold")).to_be_visible()


def test_another_neighbour_leaves_the_chart_where_it_is(visitor: Visitor) -> None:
    visitor.open("/embedding_space?model=shakespeare")
    plot = plotly_in(visitor)
    plot.get_by_text("Play", exact=True).click()
    last = plot.evaluate(FRAMES)[-1]["x"]
    wait_until(lambda: plot.evaluate(DRAWN)["x"] == last, "the last layer", 60)
    visitor.choose("Nearest to", "0 · <s>")
    assert plot.evaluate(DRAWN)["x"] == last
