"""Labels and other people's words: nothing is Markdown, nothing hidden, long ones are cut."""

from hypothesis import given
from hypothesis import strategies as st

from explorer.text.labels import cut
from explorer.text.literal import JOINER, literal


@given(st.text(max_size=40), st.integers(1, 40))
def test_a_label_is_as_long_as_asked_and_keeps_both_ends(text: str, longest: int) -> None:
    shown = cut(text, longest)
    if len(text) <= longest:
        assert shown == text
        return
    assert len(shown) == longest
    front = longest // 2
    behind = longest - 1 - front
    assert shown == text[:front] + "…" + text[len(text) - behind :]


def test_marks_mean_themselves() -> None:
    shown = literal("**b** <i> :smile: $x$ [a](b) `c` -> d")
    assert shown.replace("\\", "").replace(JOINER, "") == "**b** <i> :smile: $x$ [a](b) `c` -> d"
    assert ":smile:" not in shown.replace("\\", "")
    assert all(shown[at - 1] == "\\" for at, mark in enumerate(shown) if mark in "*<:$[]()`")


def test_a_hyphen_inside_a_word_needs_no_escape() -> None:
    assert literal("self-attention, head 1") == "self-attention, head 1"
    hyphen = f"\\-{JOINER}"
    for text in ("a--b", "-> b", "a - b", "1-a", "a-"):
        assert literal(text).count(hyphen) == text.count("-")


def test_a_text_is_one_line_of_what_can_be_seen_and_cut_at_a_word() -> None:
    assert literal("  one\n\n    two  ") == "one ↵ two"
    assert "U" in literal("a\u202eb")
    assert "\u202e" not in literal("a\u202eb")
    assert literal("word " * 1_000, longest=20) == "word word word word…"
