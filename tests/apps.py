"""The app without a browser: one of its pages opened by an address, and what is on it."""

import json
from typing import Any
from unittest.mock import Mock
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Element

from explorer.charts.figure_data import FigureData
from explorer.lessons.lesson import FIRST_PAGE
from explorer.views.shared import export_panel
from tests.served import ROOT

FIRST = "overview/overview"


def page(path: str, state: dict[str, Any] | None = None, /, **address: Any) -> AppTest:
    """A page, such as "attention/heads", in this state; a list is a parameter of several values."""
    at = at_address(str(ROOT / "explorer" / "app" / "shell.py"), **address)
    for key, value in (state or {}).items():
        at.session_state[key] = value
    if path != FIRST:  # its name only leads to the root
        at.switch_page(f"../../pages/{path}.py")
    return run(at)


def linked(address: str) -> AppTest:
    """The page that a link within the app leads to."""
    parts = urlsplit(address)
    name = parts.path.strip("/") or FIRST_PAGE
    (path,) = ROOT.glob(f"pages/*/{name}.py")
    return page(f"{path.parent.name}/{name}", **parse_qs(parts.query, keep_blank_values=True))


def page_alone(path: str, **address: Any) -> AppTest:
    """A page without the app around it; it must not fail."""
    return run(at_address(str(ROOT / "pages" / f"{path}.py"), **address))


def at_address(script: str, **address: Any) -> AppTest:
    """A script that has not run yet."""
    at = AppTest.from_file(script, default_timeout=60)
    at.query_params.update(address)
    return at


def run(changed: AppTest | Element) -> AppTest:
    """The page drawn again after a change of it, or of one of its controls; it must not fail."""
    at = changed.run()
    assert not at.exception
    return at


def component_data(at: AppTest, key: str) -> Any:
    """The data of the component with this key; None where it is not drawn."""
    found = [each for each in at.get("bidi_component") if each.key == key]
    return json.loads(found[0].proto.json) if found else None


def said(at: AppTest) -> str:
    """Everything that it says in words."""
    return "\n".join(element.value for element in [*at.text, *at.markdown, *at.caption])


FRAME = {
    *("page_top", "miniature", "miniature-choice", "code_of_views", "kept_list", "theme"),
    *("copy_link", "presenter", "presenter_code", "present_button", "export_screen"),
}
"""What every page draws."""


def views(at: AppTest) -> set[str | None]:
    """The keys of the views that it draws itself."""
    return {view.key for view in at.get("bidi_component")} - FRAME


def exported(at: AppTest, monkeypatch: pytest.MonkeyPatch) -> FigureData:
    """What a page exports."""
    formats = Mock(return_value=[])
    monkeypatch.setattr(export_panel, "file_formats", formats)
    at.session_state["export"] = True
    run(at)
    figure: FigureData = formats.call_args.args[0]
    return figure
