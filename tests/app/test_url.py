"""The table of parameters: complete, nothing left over, as documented; former values still open."""

import ast
import re
from itertools import chain

import pytest

from docs import addresses
from explorer.app import url
from explorer.app.address_table import PARAMETERS
from explorer.app.former_addresses import FORMER_PAGES, FORMER_VALUES
from tests.apps import page, said
from tests.source import ROOT, python_files

pytestmark = pytest.mark.usefixtures("small_models")
ADDRESS = re.compile(r"\bquery_params\b(?![=(])|[\"']query-params[\"']")


def test_only_one_module_touches_the_address() -> None:
    app = python_files("app.py", "pages", "explorer")
    touching = [p.as_posix() for p in app if ADDRESS.search((ROOT / p).read_text("utf-8"))]
    assert touching == ["explorer/app/url.py"]


def constants() -> set[object]:
    """What the pages, views and rooms name, but the tables themselves."""
    tables = {"url", "address_table", "former_addresses"}
    paths = [path for path in python_files("pages", "explorer") if path.stem not in tables]
    nodes = chain.from_iterable(ast.walk(ast.parse((ROOT / p).read_text("utf-8"))) for p in paths)
    return {node.value for node in nodes if isinstance(node, ast.Constant)}


def test_no_parameter_and_no_reworded_value_is_left_over() -> None:
    """What nothing names any more has no row, and a former value stands for one of today."""
    named = constants()
    assert {row.name for row in PARAMETERS} - named == set()
    options = {now for values in FORMER_VALUES.values() for now in values.values()}
    made_of = re.compile(r"^\d+ · |(?<= )\d+$|(?<=: )")
    assert {piece for now in options for piece in made_of.split(now) if piece} - named == set()


def test_every_page_of_the_table_is_one() -> None:
    pages = {path.stem for path in python_files("pages")}
    assert set(chain.from_iterable(row.pages for row in PARAMETERS)) <= pages
    assert set(FORMER_PAGES.values()) <= pages
    assert set(FORMER_VALUES) <= {row.name for row in PARAMETERS}


def test_a_name_stands_for_one_thing_on_a_page() -> None:
    seen = set()
    for row in PARAMETERS:
        for on in row.pages or [""]:
            assert (row.name, on) not in seen
            seen.add((row.name, on))


def test_a_page_may_ask_only_for_what_it_declares() -> None:
    with pytest.raises(KeyError):
        url.bound("no_such_parameter", "None")


def test_the_documentation_is_made_of_the_table() -> None:
    assert addresses.FILE.read_text("utf-8") == addresses.text(), "run: python -m docs.addresses"


def test_a_former_value_opens_what_it_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    former = {
        "side": {"Seeker": "Rollout"},
        "colours": {"Whole": "Matrix"},
        "part": {"D": "Decoder"},
    }
    monkeypatch.setattr(url, "FORMER_VALUES", former)
    at = page("attention/heads", model="letters", side="Seeker", part="D")
    assert at.segmented_control(key="side").value == "Rollout"
    assert "Seeker" not in said(at)
    at = page("attention/attention", model="letters", colours="Whole")
    assert "colours per matrix" in said(at)
    assert "Whole" not in said(at)


def test_a_value_that_is_too_long_stays_invalid() -> None:
    at = page("generation/generation", model="letters", branches="0d5" + "-5" * 5_000)
    assert "The branches in the address do not fit" in said(at)
