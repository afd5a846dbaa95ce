"""Which tokens are one word, for every way in which a tokenizer cuts."""

from explorer.analysis.word_groups import group_words, merged_tokens, sentences_of
from explorer.text import byte_tokenizer, character_tokenizer
from explorer.text.special import DECODER
from explorer.text.token import Token


def spans(text: str, *pieces: str, second: bool = False) -> list[Token]:
    """Tokens that follow each other in the text, a space before a piece belonging to it."""
    found, at = [], 0
    for piece in pieces:
        start = text.index(piece, at)
        at = start + len(piece)
        found.append(Token(9, piece.replace(" ", "␣"), start, at, second=second))
    return found


def labels(tokens: list[Token], text: str, pair: str = "") -> list[str]:
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
        assert labels(spans(text, *pieces), text) == words


def test_the_bytes_of_one_character_are_one_word() -> None:
    tokenizer = byte_tokenizer("the cat and the hat " * 20, 280, DECODER)
    text = "the 😀 cat"
    tokens = list(tokenizer.encode(text))
    found = labels(tokens, text)
    assert any("😀" in label for label in found)
    assert found[-1].endswith("cat")


def test_digits_of_a_number_are_a_word_and_special_tokens_stay_alone() -> None:
    tokenizer = character_tokenizer("0123456789", DECODER)
    tokens = list(tokenizer.encode("314"))
    special = sum(token.special for token in tokens)
    assert special
    assert len(group_words(tokens, "314")) == 1 + special


def test_written_tokens_are_told_apart_by_their_labels() -> None:
    for written, words in [
        (["␣le", "␣ch", "at", "."], ["␣le", "␣chat", "."]),
        (["le", "ch", "##at"], ["le", "chat"]),
        (["le", "chat"], ["le", "chat"]),
        (["␣", "le", "␣", "chat"], ["␣le", "␣chat"]),
    ]:
        tokens = [Token(9, label) for label in written]
        assert labels(tokens, "typed text") == words


def test_two_sentences_share_no_word_and_special_tokens_go_with_the_one_before() -> None:
    tokens = [*spans("ab", "a", "b"), *spans("cd", "c", "d", second=True)]
    assert labels(tokens, "ab", "cd") == ["ab", "cd"]
    cls, sep = Token(1, "[CLS]", special=True), Token(2, "[SEP]", special=True)
    tokens = [cls, *spans("ab", "ab"), sep, *spans("cd", "cd", second=True), sep]
    assert sentences_of(tokens) == (0, 0, 0, 1, 1)
    assert sentences_of([]) == ()
