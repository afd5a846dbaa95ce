"""A tour of every page: nothing is fetched from outside, nothing complains."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor


def tour(visitor: Visitor) -> list[str]:
    """Open every page of the navigation by a click; the titles seen."""
    visitor.open()
    links = visitor.page.get_by_test_id("stSidebarNav").get_by_role("link")
    titles = [title.strip() for title in links.all_inner_texts()]
    for title in titles:
        visitor.follow(title)
        visitor.no_traceback()
    return titles


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_full_tour_asks_no_other_host(visit: Visit, dark: bool) -> None:
    visitor = visit(dark=dark)
    assert len(tour(visitor)) >= 7
    assert visitor.notes.hosts == {urlsplit(visitor.url).netloc}
    assert visitor.violations() == []
    assert visitor.notes.errors == []


def test_light_and_dark_follow_the_system(visit: Visit) -> None:
    shades = []
    for dark in (False, True):
        page = visit(dark=dark).open()
        shades.append(
            page.get_by_test_id("stApp").evaluate("app => getComputedStyle(app).backgroundColor")
        )
    light, dark_shade = (sum(int(part) for part in numbers(shade)) for shade in shades)
    assert light > 600
    assert dark_shade < 200


def numbers(colour: str) -> list[str]:
    return colour.partition("(")[2].rstrip(")").split(",")[:3]
