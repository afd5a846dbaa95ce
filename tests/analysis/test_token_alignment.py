"""Two tokenizations of one text: which tokens belong together, and a map over those groups."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.comparison import map_difference, map_divergence, pool_map, pool_mask
from explorer.analysis.token_alignment import AlignedTokens, align_places, align_tokens
from explorer.text import byte_tokenizer, character_tokenizer, word_tokenizer
from explorer.text.special import CLASSIFIER, DECODER, SOURCE
from explorer.text.token import Token
from tests.analysis.test_word_groups import spans

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
    body = spans("ab", "ab")
    split = spans("ab", "a", "b")
    first = [OPENS, *body]
    second = [special("[CLS]"), *split, special("[SEP]", 2)]
    found = align_tokens(first, second, "ab")
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
    characters = character_tokenizer("ab😀", DECODER).encode(text)
    found = align_tokens(letters, characters, text)
    assert labels(found) == ["<s>", "a", "😀", "b"]
    assert found.first[2] == tuple(emoji)
    same = align_tokens(letters, letters, text)
    assert not same.is_pooled
    assert labels(same) == [token.label for token in letters]


@given(text=st.text("ab c", min_size=1), seed=st.integers(0, 99))
def test_one_tokenization_gives_exactly_the_plain_difference(text: str, seed: int) -> None:
    tokens = byte_tokenizer("ab c abc " * 9, 262, DECODER).encode(text)
    n = len(tokens)
    maker = torch.Generator().manual_seed(seed)
    first, second = torch.rand(2, n, n, generator=maker).softmax(-1)
    found = align_tokens(tokens, tokens, text)
    assert not found.is_pooled
    assert found.labels == tokens
    mine, theirs = (found.first, found.first), (found.second, found.second)
    assert torch.equal(pool_map(first, *mine), first)
    aligned = map_difference(pool_map(first, *mine), pool_map(second, *theirs))
    assert torch.equal(aligned, second - first)


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
            weights = torch.rand(
                len(side), len(side), generator=torch.Generator().manual_seed(seed)
            ).softmax(-1)
            sums = pool_map(weights, groups, groups).sum(-1)
            torch.testing.assert_close(sums, torch.ones(len(groups)))


def test_a_map_made_by_hand_over_groups() -> None:
    """Over “ab cd” in letters and in words: keys are added, queries averaged."""
    letters, words = spans("abcd", "a", "b", "c", "d"), spans("abcd", "ab", "cd")
    found = align_tokens(letters, words, "abcd")
    first = torch.tensor(
        [
            [1.0, 0.0, 0.0, 0.0],
            [0.5, 0.5, 0.0, 0.0],
            [0.25, 0.25, 0.5, 0.0],
            [0.125, 0.125, 0.25, 0.5],
        ]
    )
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


def test_cross_attention_is_pooled_over_the_target_in_rows_and_the_source_in_columns() -> None:
    source, target = "the cat", "le chat"
    words = word_tokenizer(["the", "cat", "le", "chat"], SOURCE)
    letters = character_tokenizer("the cat le", DECODER)
    rows, columns = (
        align_tokens(letters.encode(text), words.encode(text), text) for text in (target, source)
    )
    assert [label for label in labels(rows) if "<" not in label] == ["le", "␣chat"]
    assert [label for label in labels(columns) if "<" not in label] == ["the", "␣cat"]
    shape = len(letters.encode(target)), len(letters.encode(source))
    weights = torch.rand(shape, generator=torch.Generator().manual_seed(0)).double().softmax(-1)
    pooled = pool_map(weights, rows.first, columns.first)
    assert pooled.shape == (len(rows.labels), len(columns.labels))
    chat, the = labels(rows).index("␣chat"), labels(columns).index("the")
    queries, keys = rows.first[chat], columns.first[the]
    by_hand = sum(float(weights[q, k]) for q in queries for k in keys) / len(queries)
    assert float(pooled[chat, the]) == pytest.approx(by_hand)


def test_places_are_paired_only_in_lists_of_one_length() -> None:
    one, other = spans("ab", "a", "b"), spans("xy", "x", "y")
    found = align_places(one, other)
    assert (labels(found), found.first, found.is_pooled) == (["x", "y"], ((0,), (1,)), False)
    assert not found.by_characters
    with pytest.raises(ValueError, match="2 tokens have no places in common with 1"):
        align_places(one, other[:1])
