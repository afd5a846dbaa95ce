"""Every view is reached with the Tab key alone: a script may focus what that key passes over."""

from playwright.sync_api import Page

from tests.components.conftest import OpenDemo

REACHED = {
    ("board", ""): ".board .stage",
    ("cells", "small"): ".cells canvas",
    ("chips", "words"): ".chips .chip",
    ("film", ""): ".film .place",
    ("grid", ""): ".grid canvas",
    ("inspect", "words"): ".inspect .chip",
    ("lines", "words"): ".lines .stage",
    ("matrix", "words"): ".matrix canvas",
    ("flow", "words"): ".pass-map canvas",
    ("player", ""): ".player .on",
    ("ranked", ""): ".ranked .stage button",
    ("scaled", ""): ".matrix canvas",
    ("stage_list", "small"): ".stage_list .stage button",
    ("tree", ""): ".tree .node",
}
"""What takes the keys in each demo, and how the demo is opened."""
PRESSES = 40
HAS_FOCUS = """selector => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at?.matches(selector) ?? false;
}"""


def is_reached(page: Page, selector: str) -> bool:
    for _ in range(PRESSES):
        page.keyboard.press("Tab")
        if page.evaluate(HAS_FOCUS, selector):
            return True
    return False


def test_every_view_is_reached_with_the_tab_key(open_demo: OpenDemo) -> None:
    unreached = []
    for (name, show), selector in REACHED.items():
        page = open_demo(name, show).page
        if not is_reached(page, selector):
            unreached.append(selector)
    assert unreached == []
