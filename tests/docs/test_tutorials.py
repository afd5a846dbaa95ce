"""The numbers of the tutorials are on the pages that their links open."""

import re
from pathlib import Path

import pytest

from tests import apps
from tests.sent_words import sent_words
from tests.source import ROOT
from tests.whole_numbers import stands_in

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
LINK = re.compile(r"\]\(http://localhost:8501(/[^)]*)\)")
NUMBER = re.compile(r"\*\*\+?([^*]*\d[^*]*)\*\*")
"""What is bold and has a digit is claimed to be on the page that is linked before it."""


def claims(page: Path) -> list[tuple[str, list[str]]]:
    """Every address of a tutorial with the numbers after it, up to the next address."""
    _, *found = LINK.split(" ".join(page.read_text("utf-8").split()))
    numbers = map(NUMBER.findall, found[1::2])
    return list(zip(found[::2], numbers, strict=True))


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_the_tutorials_state_numbers_of_pages(tutorial: Path) -> None:
    for address, numbers in claims(tutorial):
        words = sent_words(apps.linked(address))
        assert [each for each in numbers if not stands_in(each, words)] == [], address
        assert "There is no model" not in words, address
        assert "; showing " not in words, f"{address} opens what is not there"
