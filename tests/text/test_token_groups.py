"""Labels: parts of one character say so, nothing is Markdown, nothing hidden, long ones are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.catalog.opened_model import open_model
from explorer.text import Token, character_tokenizer
from explorer.text.token import DECODER
from explorer.text.token_labels import (
    candidate_text,
    clusters,
    groups_of,
    label_at,
    named_at,
    texts,
)
from explorer.text.visible_text import JOINER, cut, literal, literal_sentence

FAMILY, FLAG, EMOJI = "👨‍👩‍👧", "🇫🇷", "😀"


def of_labels(*labels: str) -> tuple[Token, ...]:
    return tuple(Token(place, label) for place, label in enumerate(labels))


def test_a_character_is_what_a_reader_sees() -> None:
    for text, expected in {
        "a😀b": ["a", "😀", "b"],
        f"{FAMILY}{FLAG}🇩🇪": [FAMILY, FLAG, "🇩🇪"],
        "👍🏽👍": ["👍🏽", "👍"],
        "नमस्ते": ["न", "म", "स्ते"],
        "தமிழ்": ["த", "மி", "ழ்"],
        "e\u0301te": ["e\u0301", "t", "e"],
        "日本": ["日", "本"],
    }.items():
        assert clusters(text) == expected


def test_bytes_of_a_character_are_labelled_by_it_and_by_their_place() -> None:
    tokens = of_labels("hi", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "!")
    expected = ["😀 1/4 <0xF0>", "😀 2/4 <0x9F>", "😀 3/4 <0x98>", "😀 4/4 <0x80>"]
    assert texts(tokens) == ["hi", *expected, "!"]
    spaced = of_labels("␣<0xF0><0x9F>", "<0x98><0x80>")
    assert texts(spaced) == ["␣😀 1/2 ␣<0xF0><0x9F>", "😀 2/2 <0x98><0x80>"]


def test_a_right_to_left_word_turns_nothing_around_it() -> None:
    tokens = of_labels("the", "שלום")
    assert [named_at(tokens, place) for place in (0, 1)] == ["“the” (0)", "“\u2068שלום\u2069” (1)"]


def test_one_label_is_as_among_all() -> None:
    before = [Token(0, f"<U+{place:04X}>") for place in range(20)]
    tokens = (*before, *of_labels("hi", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "🇫", "🇷", "é"))
    assert [label_at(tokens, at) for at in range(len(tokens))] == texts(tokens)
    assert (label_at((7, "a b"), 0), label_at((7, "a b"), 1)) == ("7", "a␣b")
    assert named_at(tokens, 22) == "“😀 2/4 <0x9F>” (22)"


def test_bytes_that_are_no_character_stay_what_they_are() -> None:
    for labels in (("<0xF0>", "a"), ("<0x98>", "<0x80>"), ("<0xF0>", "<0x9F>")):
        assert not groups_of(of_labels(*labels))
        assert texts(of_labels(*labels)) == list(labels)
    ends = (Token(0, "<0xC3>"), Token(1, "</s>", special=True), Token(2, "<0xA9>"))
    assert not groups_of(ends), "a special token stands between them"


def test_a_candidate_says_which_part_of_a_character_it_is() -> None:
    for (label, *before), expected in {
        ("<0xF0>",): "<0xF0> byte 1/4",
        ("<0xC3>", "caf"): "<0xC3> byte 1/2",
        ("<0x9F>", "hi", "<0xF0>"): "<0x9F> byte 2/4",
        ("<0x9F><0x98>", "<0xF0>"): "<0x9F><0x98> bytes 2 to 3/4",
        ("<0x80>", "<0xF0>", "<0x9F>", "<0x98>"): "😀 4/4 <0x80>",
        ("<0x98><0x80>", "a", "<0xF0><0x9F>"): "😀 2/2 <0x98><0x80>",
        ("␣<0xF0><0x9F>",): "␣<0xF0><0x9F> bytes 1 to 2/4",
        ("<0x98>",): "<0x98> later byte",
        ("<0x98><0x80>", "a"): "<0x98><0x80> later bytes",
        ("<0xFF>",): "<0xFF>",
        ("the", "<0xF0>"): "the",
        ("😀", "<0xF0>"): "😀",
    }.items():
        assert candidate_text(label, before) == expected, (label, before)


@pytest.mark.parametrize("text", [EMOJI, FLAG, FAMILY, "नमस्ते", "日本", "שלום", "Привет", "👍🏽"])
def test_every_character_of_a_text_read_as_bytes_is_one_group(text: str) -> None:
    tokens = open_model("shakespeare").tokenizer.encode(f"Oh {text}")
    groups = groups_of(tokens)
    assert [group.characters for group in groups] == clusters(text)
    assert all(group.is_cut for group in groups)
    for group in groups:
        places = range(group.first, group.last + 1)
        for part, at in enumerate(places, 1):
            label = f"{group.characters} {part}/{len(places)} {tokens[at].label}"
            assert texts(tokens)[at] == label


def test_signs_of_a_character_that_can_be_read_keep_their_labels() -> None:
    tokens = character_tokenizer("नमस्ते", DECODER).encode("नमस्ते")
    (group,) = groups_of(tokens)
    assert (group.characters, group.is_cut) == ("स्ते", False)
    assert texts(tokens) == [token.label for token in tokens]


@given(st.text(max_size=40), st.integers(1, 40))
def test_a_label_is_as_long_as_asked_and_keeps_both_ends(text: str, longest: int) -> None:
    front = longest // 2
    behind = text[len(text) - (longest - 1 - front) :]
    assert cut(text, longest) == (text if len(text) <= longest else f"{text[:front]}…{behind}")


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
    assert {"U", "\u202e"} & {*literal("a\u202eb")} == {"U"}
    assert literal("word " * 1_000, longest=20) == "word word word word…"
    assert literal_sentence("word " * 40) == "word " * 39 + "word"
    assert literal_sentence("word," * 1_000).endswith("word… (4,001 more characters)")
