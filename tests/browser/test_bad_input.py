"""What people paste: shown as it is or refused in a sentence, never run, never a traceback."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Visit

TEXTS = {
    "empty": "",
    "only spaces": "   ",
    "very long": "to be or not to be, " * 5_000,
    "emoji": "I 💛 the 👩‍👩‍👧 cat 🐈‍⬛",
    "right to left": "שלום עולם مرحبا بالعالم",
    "control characters": "a\x07b\x1b[31mc\u202ed\ufeffe\x7f",
    "script": "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "markdown": "![x](https://example.org/x.png) [link](javascript:alert(3)) $x$ :material/home:",
}


HOSTILE = ("control characters", "script", "markdown")
READ_ON = ("At a glance", "Tokens", "Attention", "The whole pass", "Decoding", "Masks")


@pytest.mark.parametrize("name", TEXTS)
def test_any_text_is_shown_or_refused(visit: Visit, name: str) -> None:
    """What could be run, on every page of the navigation; the others where a text is read anew."""
    visitor = visit()
    visitor.open("/tokens?model=shakespeare")
    own = set(visitor.notes.hosts)
    visitor.type(TEXTS[name])
    visitor.rest()
    links = visitor.page.get_by_test_id("stSidebarNav").get_by_role("link")
    titles = [title.strip() for title in links.all_inner_texts()]
    assert {*READ_ON, "Museum", "Checkpoints"} <= set(titles)
    for title in titles if name in HOSTILE else READ_ON:
        visitor.follow(title)
        visitor.no_traceback()
    assert visitor.notes.dialogs == []
    assert visitor.notes.hosts == own
    assert visitor.violations() == []
