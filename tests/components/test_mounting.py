"""What a view sends besides its data, and what it costs to send."""

import re

from explorer.components.mounting import HERE, VIEW_NAMES, code, script, slim_css, slim_js

LARGER = {"pass_map": 80_000, "circuit_map": 48_000}
"""Bytes of the views that are more than others."""


def test_the_code_is_sent_without_what_only_people_read() -> None:
    source = "// why\nfunction a() {\n\n  // more\n  return 'x // y';\n}\n"
    assert slim_js(source) == "function a() {\nreturn 'x // y';\n}\n"
    assert slim_css("/* why\n so */\n.a {\n  color: red;\n}\n") == ".a {\ncolor: red;\n}\n"


def test_no_text_of_several_lines_stands_in_the_code() -> None:
    """Only then may lines be trimmed before they are sent."""
    for path in HERE.rglob("*.js"):
        for line in path.read_text("utf-8").splitlines():
            assert len(re.findall(r"(?<!\\)`", line)) % 2 == 0, (path, line)
            assert "/*" not in line, (path, line)


def test_the_code_of_every_view_is_there_and_large_enough_to_be_sent_once() -> None:
    """Streamlit sends a message that it has sent before as a hash, from 10 kB on."""
    for name in VIEW_NAMES:
        sent = code(name)
        assert f'\npublish("{name}", ' in sent
        assert len(sent.encode()) < LARGER.get(name, 40_000), name
    sent = code(*VIEW_NAMES)
    assert sent.count("\npublish(") == len(VIEW_NAMES)
    assert (sent.count("export "), sent.count("import ")) == (1, 0)
    assert script("step_buttons.js").count("const choiceOf") == 1, "with all that it imports"
    assert 10_000 < len(sent.encode()) < 245_000
