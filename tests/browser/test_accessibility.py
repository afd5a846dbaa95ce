"""Everybody: what axe finds, what the keyboard reaches, what a figure says, what a phone shows.

It takes minutes, since it goes through every view of every page: `docs/accessibility.md`.
"""

from __future__ import annotations

import pytest

from tests.browser.axe import findings
from tests.browser.truth import views
from tests.browser.visiting import DRAWN_ANEW, Visitor

THEME = "getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme"
SAID = """() => {
  const every = root => [...root.querySelectorAll("*")].flatMap(each =>
    [each, ...(each.shadowRoot ? every(each.shadowRoot) : [])]);
  const charts = "[data-testid=stVegaLiteChart], .stPlotlyChart";
  const isFigure = each => each.matches(`.view canvas, ${charts}`) &&
    !each.parentElement.closest(`${charts}, [data-testid=stDataFrame]`);
  return every(document).filter(isFigure).map(each => {
    const by = each.getAttribute("aria-describedby");
    const alone = each.closest("[aria-label]") ?? each.querySelector("[role=img][aria-label]");
    const text = by ? each.getRootNode().getElementById(by).textContent : "";
    return [each.outerHTML.slice(0, 200), text || alone?.getAttribute("aria-label") || ""];
  });
}"""
"""Every figure of a page, and what it says of itself."""
LEAST_SAID = 15
"""Letters of a title and a number."""


def open_in(visitor: Visitor, view: views.View, asks: str) -> None:
    """Go to a view of a page, and wait until all of it is drawn."""
    visitor.open(f"/{view[0]}?{asks.removeprefix('&')}")
    visitor.has_everything()


def turn(visitor: Visitor, theme: str) -> None:
    """The system asks for this theme; the page follows."""
    visitor.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    visitor.page.wait_for_function(f"() => {THEME} === '{theme}'")
    visitor.page.evaluate(DRAWN_ANEW)


def found_in(visitor: Visitor, view: views.View, asks: str, *themes: str) -> list[str]:
    """What axe finds in a view in these themes."""
    visitor.page.emulate_media(color_scheme="dark" if themes[0] == "dark" else "light")
    open_in(visitor, view, asks)
    found = []
    for theme in themes:
        turn(visitor, theme)
        found += [f"{view}, {theme}: {each}" for each in findings(visitor.page)]
    return found


@pytest.mark.parametrize("page", views.pages())
def test_axe_finds_nothing_serious(visitor: Visitor, page: str) -> None:
    view, asks = next(each for each in views.every().items() if each[0][0] == page)
    assert found_in(visitor, view, asks, "light", "dark") == []
    figures = visitor.page.evaluate(SAID)
    assert [html for html, said in figures if len(said) < LEAST_SAID] == []


@pytest.mark.thorough
@pytest.mark.parametrize("page", views.pages())
def test_axe_finds_nothing_serious_in_any_view(visitor: Visitor, page: str) -> None:
    for view, asks in views.every().items():
        if view[0] == page:
            assert found_in(visitor, view, asks, "dark", "light") == []
