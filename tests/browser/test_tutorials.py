"""The numbers of the tutorials are on the pages that their links open.

Every link is opened once, so it takes as long as thirty pages do.
"""

import re
from pathlib import Path

import pytest

from tests.browser.visiting import Visitor
from tests.served import wait_until
from tests.source import ROOT
from tests.whole_numbers import stands_in

LINK = re.compile(r"\]\(http://localhost:8501(/[^)]*)\)")
NUMBER = re.compile(r"\*\*([^*]*\d[^*]*)\*\*")
"""What is bold and has a digit is claimed to be on the page that is linked before it."""


def claims(page: Path) -> list[tuple[str, list[str]]]:
    """Every address of a tutorial with the numbers after it, up to the next address."""
    _, *found = LINK.split(" ".join(page.read_text("utf-8").split()))
    numbers = map(NUMBER.findall, found[1::2])
    return list(zip(found[::2], numbers, strict=True))


def said_on(visitor: Visitor) -> str:
    """What can be read on the page: its text, and what a canvas says of itself."""
    texts = visitor.page.locator("[data-testid=stMain]").inner_text()
    cells = visitor.page.locator("canvas :is(td, th)").all_text_contents()
    labels = "e => e.map(each => each.ariaLabel + ' ' + each.ariaDescription).join('\\n')"
    spoken = visitor.page.locator("[aria-label]").evaluate_all(labels)
    return re.sub(r"[\u2060\u2066-\u2069]", "", "\n".join([texts, spoken, *cells]))


def test_the_tutorials_state_numbers_of_pages(visitor: Visitor, subtests: pytest.Subtests) -> None:
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        with subtests.test(page=page.stem):
            for address, numbers in claims(page):
                visitor.open(address)
                visitor.has_everything()
                missing = list(numbers)

                def all_there(missing: list[str] = missing) -> bool:
                    said = said_on(visitor)
                    missing[:] = [each for each in missing if not stands_in(each, said)]
                    return not missing

                wait_until(all_there, f"{page.stem}: {missing} at {address}", 20)
                assert visitor.page.get_by_text("There is no model").count() == 0, address
