"""Somebody else's words as a label: nothing in them is Markdown, nothing is hidden."""

from __future__ import annotations

from explorer.text.literal import JOINER, literal


def test_marks_mean_themselves() -> None:
    shown = literal("**b** <i> :smile: $x$ [a](b) `c` -> d")
    assert shown.replace("\\", "").replace(JOINER, "") == "**b** <i> :smile: $x$ [a](b) `c` -> d"
    assert ":smile:" not in shown.replace("\\", "")
    assert all(shown[at - 1] == "\\" for at, mark in enumerate(shown) if mark in "*<:$[]()`")


def test_lines_are_one_line() -> None:
    assert literal("  one\n\n    two  ") == "one ↵ two"


def test_what_cannot_be_seen_is_named() -> None:
    assert "U" in literal("a\u202eb")
    assert "\u202e" not in literal("a\u202eb")


def test_a_long_text_is_cut() -> None:
    assert literal("word " * 1_000, longest=20) == "word word word word…"
