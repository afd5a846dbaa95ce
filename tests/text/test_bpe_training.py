"""The pairs that are counted are those that the library merges."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library
from tokenizers import models, pre_tokenizers
from tokenizers.trainers import BpeTrainer, WordPieceTrainer

from explorer.text import TextError
from explorer.text.bpe_training import (
    BPE,
    GOES_ON,
    MOST_TRAINED_MERGES,
    NORMALIZER,
    STATE_EVERY,
    UNKNOWN,
    WORDPIECE,
    MergeIds,
    MergeTraining,
    apply_merges,
    beginning,
    in_parts,
    train_merges,
)

TEXT = (
    "the cat sat on the mat, the bat sat on the cat; a caterpillar and a category of "
    "catastrophes were concatenated. the 12 cats of 2012 were set at ease. Été à l'œuvre. "
) * 3
WAYS = pytest.mark.parametrize("way", [BPE, WORDPIECE])
BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False)
ODD = st.text(
    st.sampled_from("aab  \n\n\t\r.,'s12½Ⅷé\u0301\u00a0\x1c\x85\u2028一🙂\0")
    | st.characters(exclude_categories=["Cs"])
)


def agrees(learnt: MergeTraining) -> None:
    for step, rule in enumerate(learnt.merges):
        first = learnt.counts_after(step).pairs[0]
        assert (first.left, first.right) == rule[:2], step


@WAYS
def test_every_rule_is_the_first_of_the_pairs_counted_before_it(way: str) -> None:
    learnt = train_merges(TEXT, 150, way)
    assert len(learnt.merges) > 50
    assert learnt.counts_after(len(learnt.merges)).pairs == (), "every word is one token"
    agrees(learnt)


@WAYS
@given(text=st.text("abcd é1,.\n", min_size=2, max_size=60).filter(str.strip))
def test_of_any_text_with_its_ties(way: str, text: str) -> None:
    agrees(train_merges(text, 30, way))


@WAYS
def test_a_jump_shows_what_single_steps_show(way: str) -> None:
    text, most = " ".join(map(str, range(1_000))), 3 * STATE_EVERY + 7
    stepped, jumped, fresh = (train_merges(text, most, way) for _ in range(3))
    assert len(stepped.merges) == most
    one_by_one = [stepped.counts_after(step) for step in range(len(stepped.merges) + 1)]
    for step in (1, STATE_EVERY - 1, STATE_EVERY, 2 * STATE_EVERY + 1, len(stepped.merges)):
        for kept in [*jumped.states][1:]:
            del jumped.states[kept]
        assert jumped.counts_after(step) == one_by_one[step]
    fresh.keep_states()
    assert sorted(fresh.states) == [0, STATE_EVERY, 2 * STATE_EVERY, 3 * STATE_EVERY]


def test_the_rules_are_those_that_the_library_learns_of_the_whole_text() -> None:
    library = Library(models.BPE())
    library.pre_tokenizer = BYTE_LEVEL
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    text = "\n".join([TEXT, "  two  spaces\n\n", TEXT[::-1]] * 150)
    assert len(in_parts(text)) > 3
    trainer = BpeTrainer(vocab_size=356, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator([text], trainer)
    learnt, model = train_merges(text, 100), json.loads(library.to_str())["model"]
    names = [(learnt.tokens[left], learnt.tokens[right]) for left, right, _ in learnt.merges]
    assert names == [tuple(pair) for pair in model["merges"]]
    assert learnt.vocabulary(100) == model["vocab"]


def test_wordpiece_is_what_the_librarys_own_trainer_of_it_learns() -> None:
    learnt = train_merges(TEXT, 40, WORDPIECE)
    library = Library(models.WordPiece(unk_token=UNKNOWN))
    library.normalizer, library.pre_tokenizer = NORMALIZER, pre_tokenizers.BertPreTokenizer()
    alphabet = list(learnt.tokens[: learnt.alphabet])
    assert alphabet[0] == UNKNOWN
    size = learnt.alphabet + 40
    trainer = WordPieceTrainer(vocab_size=size, special_tokens=alphabet, show_progress=False)
    library.train_from_iterator([TEXT], trainer)
    assert json.loads(library.to_str())["model"]["vocab"] == learnt.vocabulary(40)


def test_the_textbooks_score_would_choose_another_pair() -> None:
    """The library merges by count alone; by the score, x and ##y come first."""
    counted = train_merges("ab ab ab ac ac ad xy", 3, WORDPIECE).counts_after(0)
    names = train_merges("ab ab ab ac ac ad xy", 3, WORDPIECE).tokens
    first, scored = counted.pairs[0], counted.scored[0]
    assert (names[first.left], names[first.right], first.count) == ("a", "##b", 3)
    assert first.score == 3 / (6 * 3)
    assert (names[scored.left], names[scored.right], scored.score) == ("x", "##y", 1.0)


@WAYS
def test_the_pieces_of_the_text_are_those_that_are_counted(way: str) -> None:
    learnt = train_merges(TEXT, 60, way)
    for step in (0, 1, 30, len(learnt.merges)):
        pieces = learnt.ids_of(TEXT, step)
        assert len(pieces) == learnt.counts_after(step).tokens
        shown = "".join(learnt.tokens[number].removeprefix(GOES_ON) for number in pieces)
        assert "caterpillar" in shown
        assert set(pieces) <= set(learnt.vocabulary(step).values())


@WAYS
@given(text=ODD)
def test_words_and_letters_are_those_of_the_library(way: str, text: str) -> None:
    found = split(text, way)
    if not found:
        with pytest.raises(TextError, match="no text to train on"):
            train_merges(text, 0, way)
        return
    learnt = train_merges(text, 0, way)
    assert sorted(learnt.counts.tolist()) == sorted(found.values())
    assert learnt.counts_after(0).tokens == sum(len(word) * times for word, times in found.items())
    if way == WORDPIECE:
        letters = sorted({letter for word in found for letter in word})
        tokens = (UNKNOWN, *letters, *(GOES_ON + letter for letter in letters))
        assert learnt.tokens[: learnt.alphabet] == tokens


UNIT = st.integers(1, 5)


@given(
    st.lists(st.lists(UNIT, min_size=1, max_size=12), min_size=1, max_size=6),
    st.lists(st.tuples(UNIT, UNIT, UNIT), max_size=8),
)
def test_a_rule_is_applied_from_the_left(words: list[list[int]], pairs: list[MergeIds]) -> None:
    """As replacing in a text is, also of aaa, and of a rule that makes a token that there was."""
    units = np.array([unit for word in words for unit in (*word, 0)], dtype=np.uint32)
    text = "".join(map(chr, units.tolist()))
    for left, right, new in pairs:
        text = text.replace(chr(left) + chr(right), chr(new))
    rules = [(left - 1, right - 1, new - 1) for left, right, new in pairs]
    assert "".join(map(chr, apply_merges(units, rules, 6).tolist())) == text


@given(ODD)
@example("a\n\nb")
def test_no_word_is_cut_where_a_text_is_cut(text: str) -> None:
    whole = f"the end {text}" * 60
    parts = in_parts(whole, 50)
    assert "".join(parts) == whole
    assert len(parts) > 3
    assert sum(map(split, parts), Counter()) == split(whole)


def split(text: str, way: str = BPE) -> Counter[str]:
    if way == BPE:
        return Counter(word for word, _ in BYTE_LEVEL.pre_tokenize_str(text))
    normal = NORMALIZER.normalize_str(text)
    return Counter(word for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normal))


@given(ODD, st.integers(1, 80))
def test_the_beginning_of_a_text_ends_where_a_word_does(text: str, most: int) -> None:
    whole = f"{text} the end of it"
    begun = beginning(whole, most)
    assert whole.startswith(begun)
    assert 0 < len(begun) <= most
    if len(begun) < most:
        assert split(begun) + split(whole[len(begun) :]) == split(whole)


def test_no_word_of_the_beginning_is_cut() -> None:
    assert [beginning("the cat sat", most) for most in (6, 7)] == ["the", "the cat"]
    assert (beginning("the cat", 9), beginning("catastrophe", 5)) == ("the cat", "catas")


@WAYS
def test_where_nothing_can_be_merged_there_are_few_rules_or_none(way: str) -> None:
    with pytest.raises(TextError, match="unpaired surrogate"):
        train_merges("a\ud800", 10, way)
    for text in ["a", "🙂", "a b c", "a\0\x07\x1b", "\u202ea"]:
        learnt = train_merges(text, 1_000_000, way)
        assert len(learnt.merges) <= 10 < MOST_TRAINED_MERGES
        assert learnt.counts_after(len(learnt.merges)).pairs == ()
