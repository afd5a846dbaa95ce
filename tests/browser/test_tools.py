"""The row of tools at the foot of the sidebar, which only a browser can show at work."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visit

PAPER, NIGHT = "rgb(253, 253, 252)", "rgb(17, 19, 23)"


def test_the_theme_changes_at_one_click_and_stays_on_every_page(visit: Visit) -> None:
    visitor = visit(dark=True)
    page = visitor.open("/attention?layer=1")
    app = page.get_by_test_id("stApp")
    page.evaluate("() => { window.opened = true; }")
    for theme, paper in (("Light", PAPER), ("System", NIGHT), ("Light", PAPER)):
        page.get_by_role("radio", name=f"{theme} theme").check()
        expect(app).to_have_css("background-color", paper)
    visitor.asks(layer="1")
    assert page.evaluate("window.opened"), "the page was loaded anew"
    for address in ("/", "/heads"):
        visitor.open(address)
        expect(page.get_by_role("radio", name="Light theme")).to_be_checked()
        expect(app).to_have_css("background-color", PAPER)
    page.get_by_role("radio", name="System theme").check()
    expect(app).to_have_css("background-color", NIGHT)
    page.emulate_media(color_scheme="light")
    expect(app).to_have_css("background-color", PAPER)
