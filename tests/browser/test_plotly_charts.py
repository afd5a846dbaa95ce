"""The charts in plotly are drawn in a browser, under the content security policy."""

import pytest
from playwright.sync_api import expect

from tests.browser.visiting import Visitor

DRAWN = {
    "position_surface": ("/positions", "canvas"),
    "parameter_icicle": ("/checkpoints", ".iciclelayer path"),
    "flow_sankey": ("/heads?side=Flow&part=Encoder", ".sankey-link"),
}
"""The key of each view: its page, and what plotly draws it with."""


@pytest.mark.parametrize("key", DRAWN)
def test_an_opened_chart_is_drawn(visitor: Visitor, key: str) -> None:
    address, marks = DRAWN[key]
    visitor.open(address)
    view = visitor.widget(key)
    expect(view.get_by_test_id("stPlotlyChart")).to_have_count(0)
    visitor.until_run(view.locator("summary").click)
    chart = view.get_by_test_id("stPlotlyChart")
    expect(chart.locator(marks).first).to_be_attached()
    expect(chart.get_by_text("WebGL is not supported")).to_have_count(0)
