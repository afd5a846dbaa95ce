"""What a view sends besides its data, and what it costs to send."""

from __future__ import annotations

import re

import pytest

from explorer.components.mounting import HERE, NOTHING, code, read, slim_css, slim_js

VIEWS = ["matrix", "grid", "lines", "chips"]
SCRIPTS = sorted(HERE.rglob("*.js"))


def test_the_code_is_sent_without_what_only_people_read() -> None:
    source = "// why\nfunction a() {\n\n  // more\n  return 'x // y';\n}\n"
    assert slim_js(source) == "function a() {\nreturn 'x // y';\n}\n"
    assert slim_css("/* why\n so */\n.a {\n  color: red;\n}\n") == ".a {\ncolor: red;\n}\n"


def test_no_text_of_several_lines_stands_in_the_code(subtests: pytest.Subtests) -> None:
    """Only then may lines be trimmed before they are sent."""
    for path in SCRIPTS:
        with subtests.test(path=path):
            for line in read(path).splitlines():
                assert len(re.findall(r"(?<!\\)`", line)) % 2 == 0, line
                assert "/*" not in line


def test_the_code_is_large_enough_to_be_sent_once(subtests: pytest.Subtests) -> None:
    """Streamlit sends a message that it has sent before as a hash, from 10 kB on."""
    for name in VIEWS:
        with subtests.test(name=name):
            assert 10_000 < len(code(name).encode()) < 30_000
            assert code(name) == code(name)


def test_the_code_makes_no_markup_from_text(subtests: pytest.Subtests) -> None:
    for name in VIEWS:
        with subtests.test(name=name):
            sent = code(name)
            for word in (
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "eval(",
                "http",
                "import(",
            ):
                assert word not in sent
            assert f'export default publish("explorer_{name}"' in sent


def test_what_stands_beside_a_view_is_not_seen() -> None:
    assert "display:none" in NOTHING
