"""The table of parameters: complete, nothing left over, as documented."""

from itertools import chain

import pytest

from docs import addresses
from explorer.app import address
from explorer.app.address_parameters import PARAMETERS
from tests.apps import page, said
from tests.source import python_files

pytestmark = pytest.mark.usefixtures("small_models")


def test_every_page_of_the_table_is_one() -> None:
    pages = {path.stem for path in python_files("pages")}
    assert set(chain.from_iterable(row.pages for row in PARAMETERS)) <= pages


def test_a_name_stands_for_one_thing_on_a_page() -> None:
    seen = set()
    for row in PARAMETERS:
        for on in row.pages or [""]:
            assert (row.name, on) not in seen
            seen.add((row.name, on))


def test_a_page_may_ask_only_for_what_it_declares() -> None:
    with pytest.raises(KeyError):
        address.bound("no_such_parameter")


def test_the_documentation_is_made_of_the_table() -> None:
    assert addresses.FILE.read_text("utf-8") == addresses.text(), "run: python -m docs.addresses"


def test_a_value_that_is_too_long_stays_invalid() -> None:
    at = page("generation/generation", model="letters", branches="0d5" + "-5" * 5_000)
    assert "The branches in the address do not fit" in said(at)
