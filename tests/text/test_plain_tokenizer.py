"""Tokenizers without a model, and texts of token IDs."""

import math
import re
from itertools import pairwise

import pytest
from cachetools import LRUCache
from hypothesis import given
from hypothesis import strategies as st

from explorer.catalog.tokenizers import TYPE_IDS, TypedTokenIds
from explorer.inference import trained_tokenizers as trained
from explorer.text import TextError, steps
from explorer.text.bpe_training import BPE, WORDPIECE
from explorer.text.plain_tokenizer import tokenizer_after, unigram_tokenizer
from explorer.text.unigram import MAX_UNIGRAM_TEXT, UNIGRAM, segmentations, train_unigram
from explorer.views.input.tokenizer_comparison import difference

TEXT = trained.shipped_text(trained.TRANSLATION)
SPACES = "Decoding loses or adds spaces; every other character is the same."
ANY = st.text(
    st.sampled_from("the cat dog sees,. \n🙂é\u0301\0<_▁#")
    | st.characters(exclude_categories=["Cs"]),
    max_size=60,
)


@pytest.mark.parametrize("way", [BPE, WORDPIECE])
@given(text=ANY, step=st.integers(0, 60))
def test_the_steps_end_in_the_encoding(way: str, text: str, step: int) -> None:
    tokenizer = tokenizer_after(trained.trained_merges(TEXT, 60, way), step)
    taken, tokens = steps(tokenizer, text), tokenizer.encode(text)
    if tokens:
        assert [(p.id, p.label) for p in taken[-1].pieces] == [(t.id, t.label) for t in tokens]
    else:
        assert all(piece.id is None for piece in taken[-1].pieces)
    if way == BPE:
        assert difference(text, tokenizer.decode([token.id for token in tokens])) == ""


def test_rules_are_kept_by_their_size() -> None:
    kept = trained._trained_merges.cache
    assert isinstance(kept, LRUCache)
    kept.clear()
    made = trained.trained_merges("low low lower", 20)
    assert trained.trained_merges("low low lower", 20) is made
    assert kept.currsize == trained.size_of_training("low low lower", made)


def test_what_hangs_on_rules_is_never_more_than_is_counted() -> None:
    text = trained.shipped_text(trained.README)
    made = trained.trained_merges(text, 300)
    for step in range(len(made.merges) + 1):
        made.counts_after(step)
    held = sum(state.nbytes for state in made.states.values())
    assert len(made.states) == 4
    assert len(text.encode()) + held <= trained.size_of_training(text, made)


@given(st.lists(st.sampled_from(["the", "cat", "house", "sees", "tact", "hhh", "a"]), min_size=1))
def test_the_likeliest_cut_is_the_librarys(words: list[str]) -> None:
    unigram = trained.unigram_pieces(TEXT, trained.unigram_sizes(TEXT, 100)[0])
    tokenizer = unigram_tokenizer(unigram)
    for word in words:
        best, *others = segmentations(f"▁{word}", unigram.scores)
        ids = [token.id for token in tokenizer.encode(word)]
        chosen = [unigram.pieces[number] for number in ids]
        assert "".join(best.pieces) == "".join(piece for piece, _ in chosen) == f"▁{word}"
        assert math.isclose(best.score, sum(score for _, score in chosen), abs_tol=1e-9)
        assert all(other.score <= best.score for other in others)


def test_a_piece_stands_twice_among_the_different_words() -> None:
    for name in trained.TEXTS:
        text = trained.shipped_text(name)
        words = {f"▁{word}" for word in text.split()}
        found = trained.unigram_pieces(text, 1_000).pieces[1:]
        pieces = [piece for piece, _ in found if len(piece) > 1]
        assert pieces
        assert all(sum(word.count(piece) for word in words) > 1 for piece in pieces)


def test_sizes_become_smaller_and_keep_every_character() -> None:
    text = trained.shipped_text(trained.README)
    sizes = trained.unigram_sizes(text, 100)
    assert sizes == sorted(sizes, reverse=True)
    for size in (sizes[0], sizes[-1]):
        pieces = dict(trained.unigram_pieces(text, size).pieces)
        assert {*text} - {*" \n"} <= pieces.keys()
        assert len(pieces) <= size
        assert all(score < 0 for score in list(pieces.values())[1:])


def test_odd_texts_are_learnt() -> None:
    for text in ["a", "🙂", "a\n\nb", "aaaa", "ab" * 3_000]:
        for way in (BPE, WORDPIECE, UNIGRAM):
            assert trained.trained_tokenizer(text, way, 50).encode(text), (way, text[:9])


@pytest.mark.parametrize("way", [BPE, WORDPIECE, UNIGRAM])
def test_no_text_and_too_much_of_it_are_one_sentence(way: str) -> None:
    with pytest.raises(TextError, match="no text to train on"):
        trained.trained_tokenizer("", way, 20)
    with pytest.raises(TextError, match="the limit is 100,000"):
        train_unigram("a " * MAX_UNIGRAM_TEXT, 20)


@pytest.mark.parametrize(
    ("way", "text", "said"),
    [
        (BPE, " the  cat\n🙂", ""),
        (WORDPIECE, "the cat, the dog", SPACES),
        (WORDPIECE, "the ☃", "The first difference is at word 2: “☃” is decoded as “[UNK]”."),
        (UNIGRAM, "the  cat\nsees", SPACES),
    ],
)
def test_there_and_back(way: str, text: str, said: str) -> None:
    tokenizer = trained.trained_tokenizer(TEXT + ", .", way, 100)
    decoded = tokenizer.decode([token.id for token in tokenizer.encode(text)])
    assert difference(text, decoded) == said


def test_what_is_lost_is_said() -> None:
    for text, decoded, said in (
        ("The CAT", "the cat", "Decoding loses capitals; every letter is otherwise the same."),
        ("abc", "ab", "The first difference is at word 1: “abc” is decoded as “ab”."),
        ("a b", "a", "The first difference is at word 2: “b” is decoded as nothing."),
        ("a", "b a", "Decoding adds “b” before word 1."),
        ("a b c", "a c", "The first difference is at word 2: “b” is decoded as nothing."),
        ("a b", "a b c", "Decoding adds “c” before word 3."),
    ):
        assert difference(text, decoded) == said


def test_a_long_text_is_compared_to_its_first_difference() -> None:
    same, rest = ["a", "b"] * 2_000, ["c"] * 4_000
    said = difference(" ".join([*same, "x", *rest]), " ".join([*same, "y", *rest]))
    assert said == "The first difference is at word 4001: “x” is decoded as “y”."


NUMBERS = TypedTokenIds(50)


@given(st.lists(st.tuples(st.integers(0, 49), st.text(" \t\n\u00a0", min_size=1, max_size=3))))
def test_every_number_is_a_token_at_its_place(typed: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{space}" for number, space in typed)
    tokens = NUMBERS.encode(text)
    assert [token.id for token in tokens] == [number for number, _ in typed] == NUMBERS.ids(text)
    assert [text[token.start : token.end] for token in tokens] == [str(n) for n, _ in typed]
    assert all(a.end < b.start for a, b in pairwise(tokens))
    assert NUMBERS.ids(NUMBERS.decode([token.id for token in tokens])) == NUMBERS.ids(text)


def test_what_is_no_number_of_a_token_is_told() -> None:
    for text in [*"a|-1|+1|1.5|1,2|5 x|٣|²|0x1|1e3|1_0|\0".split("|"), "9" * 10, "9" * 1_999]:
        with pytest.raises(TextError, match=f"^{re.escape(TYPE_IDS)}$"):
            NUMBERS.encode(text)
    for text, number in [("50", "50"), ("1 2 999999999", "999999999")]:
        with pytest.raises(TextError, match=rf"Token {number} does not exist: .* 50, from 0 on\.$"):
            NUMBERS.encode(text)
    with pytest.raises(TextError, match=r"\.$"):
        NUMBERS.encode("1 " * 1_000_000)


def test_leading_zeros_stay_in_the_label() -> None:
    (token,) = NUMBERS.encode(" 007 ")
    assert (token.id, token.label, token.start, token.end) == (7, "007", 1, 4)
    assert NUMBERS.token(7).label == NUMBERS.label(7) == "7"


def test_a_pair_is_read_behind_the_first_text() -> None:
    tokens = NUMBERS.encode("1 2", "3")
    assert [token.id for token in tokens] == [1, 2, 3] == NUMBERS.ids("1 2", "3")
    assert [token.segment for token in tokens] == [0, 0, 1]
    assert [token.second for token in tokens] == [False, False, True]
    assert (tokens[2].start, tokens[2].end) == (0, 1), "in the second text"


def test_numbers_that_are_typed_have_their_steps() -> None:
    """A folder without a tokenizer is read by the numbers themselves."""
    pieces = steps(NUMBERS, "5 17 3")[-1].pieces
    shown = [(piece.id, piece.start, piece.end) for piece in pieces]
    assert shown == [(5, 0, 1), (17, 2, 4), (3, 5, 6)]
