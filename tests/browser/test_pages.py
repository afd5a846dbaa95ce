"""What every page is to the browser around it: its title, its address, where it opens."""

import pytest
from playwright.sync_api import expect

from tests.browser.visiting import Visitor

SCROLLED = "main => main.scrollTop"


def test_a_tab_is_named_after_its_page(visitor: Visitor, subtests: pytest.Subtests) -> None:
    page = visitor.open("/")
    for title in map(str, visitor.links().all_text_contents()):
        with subtests.test(title=title):
            visitor.follow(title)
            expect(page).to_have_title(f"{title} · Attention explorer")


def test_its_name_and_start_lead_to_the_first_page(visitor: Visitor) -> None:
    for address in ("/start", "/overview"):
        page = visitor.open(f"{address}?model=translation&text=the+black+cat")
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        expect(page.get_by_label("Your sentence")).to_have_value("the black cat")


def test_another_page_opens_at_its_top(visitor: Visitor) -> None:
    page = visitor.open("/checkpoints")
    main = page.get_by_test_id("stMain")
    main.evaluate("main => main.scrollTo(0, 10_000)")
    assert main.evaluate(SCROLLED) > 0
    main.get_by_test_id("stPageLink").last.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Attention maps")
    visitor.rest()
    assert main.evaluate(SCROLLED) == 0
