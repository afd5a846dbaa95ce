"""A sentence of one's own: its tokens, its heads, and the same view again elsewhere."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import wait_until

SENTENCE = "the white cat does not eat the red fish"
HEAD = "attention_head"
GRID = "overview"
LINES = "attention_lines"


def test_the_start_page_is_alive_at_once(visitor: Visitor) -> None:
    visitor.open()
    visitor.drawn()
    visitor.no_traceback()


def test_a_typed_sentence_becomes_tokens(visitor: Visitor) -> None:
    page = visitor.open("/tokens")
    visitor.type(SENTENCE)
    visitor.asks(text=SENTENCE)
    for word in ("white", "fish"):
        expect(page.get_by_test_id("stMain").get_by_text(word, exact=True).first).to_be_visible()
    visitor.follow("Attention")
    expect(page.get_by_label("Your sentence", exact=True)).to_have_value(SENTENCE)
    visitor.drawn()


def test_a_click_on_the_grid_changes_the_picture(visitor: Visitor) -> None:
    page = visitor.open("/attention?model=shakespeare&layer=0&head=0")
    before = visitor.picture(HEAD)
    visitor.pick(GRID, layer=1, head=2)
    expect(page.get_by_text("Layer 1, head 2", exact=True)).to_be_visible()
    wait_until(lambda: visitor.picture(HEAD) != before, "another picture")
    visitor.no_traceback()


def test_the_lines_view_draws_the_chosen_head(visitor: Visitor) -> None:
    page = visitor.open("/attention?layer=0")
    page.get_by_test_id("stMain").get_by_role("radio", name="Lines").click()
    visitor.asks(view="Lines")
    before = visitor.picture(LINES)
    visitor.pick(GRID, layer=0, head=0)
    visitor.asks(head="0", view="Lines")
    wait_until(lambda: visitor.picture(LINES) != before, "the lines of another head")
    expect(visitor.widget(HEAD)).to_have_count(0)
    visitor.no_traceback()


def test_a_reload_and_a_link_give_the_same_view(visitor: Visitor, visit: Visit) -> None:
    visitor.open("/attention")
    before = visitor.picture(HEAD)
    visitor.type(SENTENCE)
    visitor.asks(text=SENTENCE)
    wait_until(lambda: visitor.picture(HEAD) != before, "the head over the typed sentence")
    seen = visitor.picture(HEAD)
    visitor.page.reload()
    visitor.rest()
    visitor.shows(HEAD, seen)

    friend = visit()
    friend.page.goto(visitor.page.url)
    friend.rest()
    friend.shows(HEAD, seen)
    expect(friend.page.get_by_label("Your sentence", exact=True)).to_have_value(SENTENCE)
