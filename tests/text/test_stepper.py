"""What the stepper shows ends in exactly what the library encodes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.text import (
    CLASSIFIER,
    MAX_STEPPED_CHARACTERS,
    SOURCE,
    Piece,
    TextError,
    Tokenizer,
    byte_tokenizer,
    character_tokenizer,
    steps,
    word_tokenizer,
)
from explorer.text.numbers import Numbers

CORPUS = "the cat sat on the mat. the dog saw the cat; the dog sat.\n" * 20

TOKENIZERS = [
    byte_tokenizer(CORPUS, 310),
    byte_tokenizer(CORPUS + "🙂🙃 שלום é" * 30, 330, CLASSIFIER, lowercase=True),
    character_tokenizer("abc 🙂ש", lowercase=True),
    word_tokenizer(["the", "cat", ".", "שלום"], SOURCE, lowercase=True),
]
ALL = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["bytes", "small", "letters", "words"])

ODD = ("|🙂👨‍👩‍👧|שלום the|\0\x07\r\n|İstanbul ẞ|e\u0301|<s>| the  the |\u2028").split("|")
LIKELY = st.lists(st.sampled_from(["the", " ", "cat", "sat", "🙂", "\n", "שלום", "İ", "a", "é"]))


def shown(pieces: tuple[Piece, ...]) -> list[tuple[object, ...]]:
    return [(p.id, p.label, p.start, p.end, p.special) for p in pieces]


def assert_ends_in_the_encoding(tokenizer: Tokenizer, text: str) -> None:
    taken = steps(tokenizer, text)
    tokens = tokenizer.encode(text)
    expected = [(t.id, t.label, t.start, t.end, t.special) for t in tokens]
    assert shown(taken[-1].pieces) == expected
    # The special tokens are all that the last step adds: the merges came to the end by themselves.
    assert shown(taken[-2].pieces) == [token for token in expected if not token[-1]]


@ALL
def test_odd_texts(tokenizer: Tokenizer) -> None:
    for text in ODD:
        assert_ends_in_the_encoding(tokenizer, text)


@ALL
@given(text=st.text(max_size=80) | LIKELY.map("".join))
def test_any_text(tokenizer: Tokenizer, text: str) -> None:
    assert_ends_in_the_encoding(tokenizer, text[:200])


def test_merges_come_in_the_order_they_were_learnt() -> None:
    taken = steps(TOKENIZERS[0], "the cat sat on the mat")
    ranks = [step.rank for step in taken if step.rank is not None]
    assert ranks == sorted(ranks)
    assert len(ranks) > 3
    for before, after in pairwise(taken[2:-1]):
        made = sum(piece.changed for piece in after.pieces)
        assert made == len(before.pieces) - len(after.pieces) >= 1


def test_a_step_says_what_it_did() -> None:
    actions = [step.action for step in steps(TOKENIZERS[0], "the")]
    assert actions[:3] == [
        "The text as it was typed.",
        "Split into words; a space belongs to the word after it.",
        "Write each character as its bytes.",
    ]
    assert actions[3].startswith("Merge h and e (rule ")
    assert "1 of 2 are not in it" in steps(TOKENIZERS[3], "the owl")[-2].action


def test_the_stepper_is_bounded() -> None:
    steps(TOKENIZERS[0], "the cat sat " * 80)
    with pytest.raises(TextError, match="1,001 characters"):
        steps(TOKENIZERS[0], "a" * (MAX_STEPPED_CHARACTERS + 1))
    with pytest.raises(TextError, match="half of a character pair"):
        steps(TOKENIZERS[0], "\udc00")


def test_numbers_that_are_typed_have_their_steps() -> None:
    """A folder without a tokenizer is read by the numbers themselves."""
    pieces = steps(Numbers(50), "5 17 3")[-1].pieces
    assert [(piece.id, piece.start, piece.end) for piece in pieces] == [
        (5, 0, 1), (17, 2, 4), (3, 5, 6),
    ]  # fmt: skip
