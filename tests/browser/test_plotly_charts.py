"""The charts in plotly are drawn in a browser, under the content security policy, and move."""

from playwright.sync_api import expect

from tests.browser.visiting import Visitor, box_of
from tests.served import wait_until

CHARTS = {
    "position_surface": ("/positions", "canvas"),
    "flow_sankey": ("/heads?side=Flow&part=Encoder", ".sankey-link"),
}
"""The key of each view: its page, and what plotly draws it with."""
FRAMES = """plot => plot._transitionData._frames.filter(frame => /^[0-9]+$/.test(frame.name))
  .map(frame => frame.data[1].x)"""
"""What the slider moves the tokens to, as plotly holds it."""
DRAWN = "plot => plot.data[3].x"


def test_an_opened_chart_is_drawn(visitor: Visitor) -> None:
    for key, (address, marks) in CHARTS.items():
        visitor.open(address)
        view = visitor.widget(key)
        expect(view.get_by_test_id("stPlotlyChart")).to_have_count(0)
        visitor.until_run(view.locator("summary").click)
        chart = view.get_by_test_id("stPlotlyChart")
        expect(chart.locator(marks).first).to_be_attached()
        expect(chart.get_by_text("WebGL is not supported")).to_have_count(0)
    visitor.open("/checkpoints?show=Parameters")
    expect(visitor.widget("parameter_boxes").locator(".iciclelayer path").first).to_be_attached()


def test_the_tokens_of_a_space_move_through_all_layers_and_then_stay(visitor: Visitor) -> None:
    """By the slider to the middle, and by the button on to the end, where another neighbour
    leaves them.
    """
    visitor.open("/embedding_space?model=shakespeare&in_3d=true")
    plot = visitor.widget("embedding_points").locator(".js-plotly-plot")
    expect(plot.locator("canvas").first).to_be_attached()
    expect(plot.get_by_text("WebGL is not supported")).to_have_count(0)
    first, middle, last = plot.evaluate(FRAMES)
    assert plot.evaluate(DRAWN) == first != last
    rail = box_of(plot.locator(".slider-rail-touch-rect"))
    visitor.page.mouse.click(rail["x"] + rail["width"] / 2, rail["y"] + 8)
    wait_until(lambda: plot.evaluate(DRAWN) == middle, "the middle layer", 60)
    plot.get_by_text("Play", exact=True).click()
    wait_until(lambda: plot.evaluate(DRAWN) == last, "the last layer", 60)
    expect(plot.get_by_text("after layer 1: these axes hold")).to_be_visible()
    visitor.choose("Nearest to", "0 · <s>")
    assert plot.evaluate(DRAWN) == last
