"""Which tokens belong together, within a text and between two, and maps over such groups."""

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.map_summary import head_of_cell, summary_of
from explorer.analysis.token_alignment import (
    AlignedTokens,
    align_places,
    align_texts,
    align_tokens,
    common_scale,
    largest_change,
    map_difference,
    map_divergence,
    pool_map,
    pool_mask,
)
from explorer.analysis.word_groups import group_words, merged_tokens, sentences_of
from explorer.text import byte_tokenizer, character_tokenizer, word_tokenizer
from explorer.text.token import CLASSIFIER, DECODER, Token
from tests.closeness import assert_close_to
from tests.components.samples import heads


def spans(text: str, *pieces: str, second: bool = False) -> list[Token]:
    """Tokens that follow each other in the text, a space before a piece belonging to it."""
    found, at = [], 0
    for piece in pieces:
        start = text.index(piece, at)
        at = start + len(piece)
        found.append(Token(9, piece.replace(" ", "␣"), start, at, second=second))
    return found


def words_in(tokens: list[Token], text: str, pair: str = "") -> list[str]:
    groups = group_words(tokens, text, pair)
    assert sorted(at for group in groups for at in group) == list(range(len(tokens)))
    return [token.label for token in merged_tokens(tokens, groups, text, pair)]


def test_a_word_ends_at_a_space_and_at_punctuation() -> None:
    for text, pieces, words in [
        ("unhappily so.", ["un", "happi", "ly", " so", "."], ["unhappily", "␣so", "."]),
        ("playing it", ["play", "ing", "it"], ["playing", "it"]),
        ("a b", ["a", "b"], ["a", "b"]),
        ("don't", ["don", "'", "t"], ["don", "'", "t"]),
        ("naïve 12", ["na", "ï", "ve", " 1", "2"], ["naïve", "␣12"]),
        ("我是人", ["我", "是", "人"], ["我", "是", "人"]),
        ("", [], []),
    ]:
        assert words_in(spans(text, *pieces), text) == words


def test_digits_and_the_bytes_of_a_character_are_a_word_and_special_tokens_stay_alone() -> None:
    tokenizer = character_tokenizer("0123456789", DECODER)
    tokens = list(tokenizer.encode("314"))
    special = sum(token.special for token in tokens)
    assert special
    assert len(group_words(tokens, "314")) == 1 + special
    tokenizer = byte_tokenizer("the cat and the hat " * 20, 280, DECODER)
    text = "the 😀 cat"
    tokens = list(tokenizer.encode(text))
    found = words_in(tokens, text)
    assert any("😀" in label for label in found)
    assert found[-1].endswith("cat")


def test_written_tokens_are_told_apart_by_their_labels() -> None:
    for written, words in [
        (["␣le", "␣ch", "at", "."], ["␣le", "␣chat", "."]),
        (["le", "ch", "##at"], ["le", "chat"]),
        (["le", "chat"], ["le", "chat"]),
        (["␣", "le", "␣", "chat"], ["␣le", "␣chat"]),
    ]:
        assert words_in([Token(9, label) for label in written], "typed text") == words


def test_two_sentences_share_no_word_and_special_tokens_go_with_the_one_before() -> None:
    tokens = [*spans("ab", "a", "b"), *spans("cd", "c", "d", second=True)]
    assert words_in(tokens, "ab", "cd") == ["ab", "cd"]
    cls, sep = Token(1, "[CLS]", special=True), Token(2, "[SEP]", special=True)
    tokens = [cls, *spans("ab", "ab"), sep, *spans("cd", "cd", second=True), sep]
    assert sentences_of(tokens) == (0, 0, 0, 1, 1)
    assert sentences_of([]) == ()


OPENS = Token(1, "<s>", special=True)


def special(label: str, at: int = 0) -> Token:
    return Token(2, label, at, at, special=True)


def labels(found: AlignedTokens) -> list[str]:
    return [token.label for token in found.labels]


def pieces(found: AlignedTokens, first: Sequence[Token], second: Sequence[Token]) -> list[str]:
    """Each group as the labels of both."""
    return [
        f"{' '.join(first[at].label for at in one)} | {' '.join(second[at].label for at in other)}"
        for one, other in zip(found.first, found.second, strict=True)
    ]


def test_groups_are_the_smallest_that_begin_and_end_with_tokens_of_both() -> None:
    for text, first, second, expected, named in [
        ("abcd", ["a", "b", "cd"], ["ab", "c", "d"], ["a b | ab", "cd | c d"], ["ab", "cd"]),
        ("abcd", ["ab", "cd"], ["a", "bc", "d"], ["ab cd | a bc d"], ["abcd"]),
        ("ab", ["a", "b"], ["a", "b"], ["a | a", "b | b"], ["a", "b"]),
        # A space that only one has goes with what is after it, at the end with what is before.
        ("a bc", ["a", " ", "b", "c"], ["a", "bc"], ["a | a", "␣ b c | bc"], ["a", "␣bc"]),
        ("a b ", ["a", " b", " "], ["a", "b"], ["a | a", "␣b ␣ | b"], ["a", "␣b␣"]),
        ("a b", ["a", "b"], ["a", " b"], ["a | a", "b | ␣b"], ["a", "␣b"]),
        ("don't", ["don", "'t"], ["do", "n't"], ["don 't | do n't"], ["don't"]),
    ]:
        one, other = spans(text, *first), spans(text, *second)
        found = align_tokens(one, other, text)
        assert pieces(found, one, other) == expected, (text, first, second)
        assert labels(found) == named
        assert found.left_out == ((), ())
        assert found.is_pooled == any(len(each) > 1 for each in found.first + found.second)


def test_special_tokens_are_aligned_by_their_role_or_left_out() -> None:
    body, split = spans("ab", "ab"), spans("ab", "a", "b")
    first = [OPENS, *body]
    found = align_tokens(first, [special("[CLS]"), *split, special("[SEP]", 2)], "ab")
    assert labels(found) == ["<s>/[CLS]", "ab"]
    assert (found.first, found.second) == (((0,), (1,)), ((0,), (1, 2)))
    assert found.left_out == ((), (3,))
    assert found.is_pooled
    closed = [*body, special("</s>", 2)]
    assert labels(align_tokens(closed, [*body, special("</s>", 2)], "ab")) == ["ab", "</s>"]
    assert align_tokens(first, closed, "ab").left_out == ((0,), (1,)), "they open, and close"


def test_a_pair_of_texts_is_aligned_text_by_text() -> None:
    a, b = spans("ab", "ab"), spans("cd", "cd", second=True)
    parts = [*spans("ab", "a", "b")], [*spans("cd", "c", "d", second=True)]
    first = [special("[CLS]"), *a, special("[SEP]"), *b, special("[SEP]")]
    second = [OPENS, *parts[0], special("</s>"), special("</s>"), *parts[1], special("</s>")]
    found = align_tokens(first, second, "ab", "cd")
    assert labels(found) == ["[CLS]/<s>", "ab", "[SEP]/</s></s>", "cd", "[SEP]/</s>"]
    assert found.second == ((0,), (1, 2), (3, 4), (5, 6), (7,))


def test_the_bytes_of_an_emoji_are_one_group_unless_both_have_the_same() -> None:
    text = "a😀b"
    letters = byte_tokenizer("ab " * 9, 260, DECODER).encode(text)
    emoji = [at for at, token in enumerate(letters) if token.label.startswith("<0x")]
    assert len(emoji) == 4
    found = align_tokens(letters, character_tokenizer("ab😀", DECODER).encode(text), text)
    assert labels(found) == ["<s>", "a", "😀", "b"]
    assert found.first[2] == tuple(emoji)
    same = align_tokens(letters, letters, text)
    assert not same.is_pooled
    assert labels(same) == [token.label for token in letters]


@given(text=st.text("the cat 😀", min_size=1).filter(str.strip), seed=st.integers(0, 99))
def test_every_token_is_in_one_group_and_rows_still_sum_to_one(text: str, seed: int) -> None:
    made = [
        byte_tokenizer("the cat " * 9, 270, DECODER),
        character_tokenizer("the cat 😀", DECODER),
        word_tokenizer(["the", "cat"], CLASSIFIER),
    ]
    tokens = [each.encode(text) for each in made]
    for first, second in zip(tokens, [*tokens[1:], tokens[0]], strict=True):
        found = align_tokens(first, second, text)
        for side, groups in ((first, found.first), (second, found.second)):
            assert sorted(at for group in groups for at in group) == list(range(len(side)))
            random = torch.Generator().manual_seed(seed)
            weights = torch.rand(len(side), len(side), generator=random).softmax(-1)
            assert_close_to(pool_map(weights, groups, groups).sum(-1), torch.ones(len(groups)))


def test_a_map_made_by_hand_over_groups() -> None:
    """Over “ab cd” in letters and in words: keys are added, queries averaged."""
    letters, words = spans("abcd", "a", "b", "c", "d"), spans("abcd", "ab", "cd")
    found = align_tokens(letters, words, "abcd")
    first = torch.tensor([[8, 0, 0, 0], [4, 4, 0, 0], [2, 2, 4, 0], [1, 1, 2, 4]]) / 8
    second = torch.tensor([[0.75, 0.25], [0.0, 1.0]])
    pooled = pool_map(first, found.first, found.first)
    assert pooled.tolist() == [[1.0, 0.0], [0.375, 0.625]]
    assert pool_map(second, found.second, found.second).tolist() == second.tolist()
    assert map_difference(pooled, second).tolist() == [[-0.25, 0.25], [-0.375, 0.375]]
    masked = pool_mask(first > 0, found.first, found.first)
    assert masked.tolist() == [[True, False], [True, True]]


def test_keys_that_are_left_out_count_in_the_divergence_as_one_more() -> None:
    first = torch.tensor([[0.5, 0.5]])
    assert pool_map(first, [(0,)], [(1,), (0,)]).tolist() == [[0.5, 0.5]]
    assert pool_map(first, [(0,)], [(1,), ()]).tolist() == [[0.5, 0.0]]
    other = pool_map(torch.tensor([[1.0]]), [(0,)], [(0,), ()])
    rows = torch.ones(1, dtype=torch.bool)
    assert 0 < map_divergence(pool_map(first, [(0,)], [(1,), (0,)]), other, rows) < 1
    assert pool_map(first, [], [(0,)]).shape == (0, 1)
    assert pool_map(first, [(0,)], []).shape == (1, 0)


def test_queries_and_keys_are_pooled_in_groups_of_their_own() -> None:
    weights = torch.rand(3, 4, generator=torch.Generator().manual_seed(0)).softmax(-1)
    pooled = pool_map(weights, [(0,), (1, 2)], [(0, 1, 3), (2,)])
    assert pooled.shape == (2, 2)
    assert float(pooled[1, 0]) == pytest.approx(float(weights[1:, [0, 1, 3]].sum()) / 2)


def test_places_are_paired_only_in_lists_of_one_length() -> None:
    one, other = spans("ab", "a", "b"), spans("xy", "x", "y")
    found = align_places(one, other)
    assert (labels(found), found.first, found.is_pooled) == (["x", "y"], ((0,), (1,)), False)
    assert not found.by_characters


@pytest.mark.parametrize(
    ("texts", "places", "partners"),
    [
        (("abXcd", "abYZcd"), (4, 5), "00 11 23 34 45"),  # the last of a longer run
        (("abcd", "abXcd"), (3, 4), "00 11 23 34"),
        (("abXYc", "abc"), (4, 2), "00 11 42"),
        (("ab", "abc"), (1, 2), "00 12"),  # the outputs are partners
        (("aMb", "aaMb"), (1, 2), "00 12 23"),
        (("abc", "acb"), (2, 2), "00 11 22"),  # of one length, whatever the tokens
    ],
)
def test_partners_are_tokens_of_both_texts(
    texts: tuple[str, str], places: tuple[int, int], partners: str
) -> None:
    first, second = ([Token(ord(letter), letter) for letter in text] for text in texts)
    aligned = align_texts(first, second, places)
    assert " ".join(f"{a}{b}" for a, b in aligned) == partners
    assert align_texts(second, first, places[::-1]) == tuple((b, a) for a, b in aligned)


def test_a_difference_is_second_minus_first_and_of_a_head_with_itself_nothing() -> None:
    first, second = heads(2, 4, 4, seed=1)
    rows = torch.ones(4, dtype=torch.bool)
    found = map_difference(first, second)
    assert torch.equal(found, second - first)
    assert largest_change(found) == float(found.abs().max()) > 0
    assert 0 < map_divergence(first, second, rows) <= 1
    assert map_divergence(first, second, rows) == pytest.approx(map_divergence(second, first, rows))
    assert common_scale(first, second) == float(torch.max(first.max(), second.max()))
    assert not map_difference(first, first).any()
    assert map_divergence(first, first, rows) == 0


TEXT = ("the", "cat", "the", "hat")
CAUSAL = torch.ones(4, 4, dtype=torch.bool).tril()
WEIGHTS = torch.tensor([[8, 0, 0, 0], [2, 6, 0, 0], [4, 2, 2, 0], [0, 1, 4, 3]]) / 8
ELSE = " where more than one key is visible"
OF_3 = "the 3 rows that see more than one key"


def summary(weights: torch.Tensor, allowed: torch.Tensor = CAUSAL) -> str:
    return summary_of(weights, allowed, TEXT, TEXT, "{row} attends to {column}: {value}")


def test_the_head_of_a_cell_is_the_one_that_exceeds_its_other_queries_to_the_same_key() -> None:
    weights = torch.eye(3).expand(2, 2, 3, 3).clone()
    allowed = torch.ones(3, 3).tril().bool().expand(2, -1, -1)
    assert head_of_cell(weights, allowed, 2, 0).startswith("No head gives the pinned cell more")
    weights[0, 0, 1:, 0] = 0.9  # a head whose every query gives the first key most
    weights[1, 1, 1:, 0] = torch.tensor([0.25, 0.75])
    assert head_of_cell(weights, allowed, 2, 0) == (
        "Of 4 heads, head 1 of layer 1 gives the pinned cell most beyond what its other queries "
        "give the same key on average: 0.750, against 0.250."
    )
    weights[0, 0] = torch.nan
    assert "head 1 of layer 1" in head_of_cell(weights, allowed, 2, 0)
    assert head_of_cell(weights, allowed, 2, 2) == "", "no other query sees that key"


def test_equal_labels_are_told_apart_by_their_places() -> None:
    assert summary(WEIGHTS[:, [0, 2, 1, 3]], torch.ones_like(CAUSAL)).startswith(
        "“the” (0) attends to “the” (0): 1.00, the largest weight. The first key, “the” (0), gets"
    )
    assert summary(WEIGHTS) == (
        f"“cat” (1) attends to “cat” (1): 0.750, the largest weight{ELSE}. The first key, "
        f"“the” (0), gets 25.0 % of the weight of {OF_3}."
    )


def test_where_nothing_has_weight_no_cell_is_the_largest() -> None:
    assert summary(torch.zeros(4, 4)) == f"Every weight of {OF_3} is 0."
    window = CAUSAL & torch.eye(4, dtype=torch.bool)
    window[3] = CAUSAL[3]
    alone = "Every weight of the row that sees more than one key is 0."
    assert summary(torch.zeros(4, 4), window) == alone
    assert summary(WEIGHTS, torch.eye(4, dtype=torch.bool)) == "", "no row has a choice"
    cut = WEIGHTS.clone()
    cut[3] = 0
    assert f"gets 37.5 % of the weight of {OF_3}." in summary(cut)


def test_masked_first_keys_and_equal_largest_weights_are_counted() -> None:
    last = CAUSAL.clone()
    last[3, 0] = False
    assert summary(WEIGHTS, last).endswith(f"25.0 % of the weight of {OF_3}, 1 of which masks it.")
    last[2, 0] = False
    weights = WEIGHTS.clone()
    weights[2] = torch.tensor([0, 0.5, 0.5, 0])
    assert summary(weights, last).endswith(f" of the weight of {OF_3}, 2 of which mask it.")
    last[1, 0] = False
    assert summary(weights, last).endswith(
        ". The first key, “the” (0), is masked in the 2 rows that see more than one key."
    )
    even = CAUSAL / CAUSAL.sum(-1, keepdim=True)
    assert f": 0.500, the largest weight{ELSE}, which another cell has too. " in summary(even)
    even[1] = torch.tensor([0, 1, 0, 0])
    assert f": 1.00, the largest weight{ELSE}. " in summary(even)
    even[2:] = 0
    even[2, :2] = even[3, 1] = 1
    assert f": 1.00, the largest weight{ELSE}, which 3 other cells have too. " in summary(even)


def test_rows_that_are_not_finite_are_left_out_in_words() -> None:
    broken = WEIGHTS.clone()
    broken[1] = math.nan
    largest = f"“the” (2) attends to “the” (0): 0.500, the largest weight{ELSE},"
    assert summary(broken).startswith(largest)
    rest = "of the weight of the 2 rows that see more than one key, with finite weights."
    assert summary(broken).endswith(rest)
    assert summary(torch.full((4, 4), math.nan)) == ""
