"""Tokenizers: labels, spans, special tokens, and text that tries to break them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.text import (
    CLASSIFIER,
    DECODER,
    MAX_CHARACTERS,
    SOURCE,
    TextError,
    Token,
    Tokenizer,
    byte_tokenizer,
    character_tokenizer,
    word_tokenizer,
)

CORPUS = "the cat sat on the mat. the dog saw the cat; the dog sat.\n" * 20
BYTES = byte_tokenizer(CORPUS, 300)
SMALL_BYTES = byte_tokenizer(CORPUS, 300, CLASSIFIER, lowercase=True)
CHARACTERS = character_tokenizer("abcdefgh ⟨é", SOURCE)
WORDS = word_tokenizer(["the", "cat", "sat", ".", "pas"], SOURCE, lowercase=True)
ALL = pytest.mark.parametrize("tokenizer", [BYTES, SMALL_BYTES, CHARACTERS, WORDS])


def labels(tokenizer: Tokenizer, text: str) -> list[str]:
    return [token.label for token in tokenizer.encode(text)]


def test_the_kinds_and_their_special_tokens() -> None:
    assert [t.kind for t in (BYTES, CHARACTERS, WORDS)] == ["bytes", "characters", "words"]
    assert (BYTES.pad_id, BYTES.bos_id, BYTES.eos_id, BYTES.unk_id) == (0, 1, None, None)
    assert (WORDS.pad_id, WORDS.bos_id, WORDS.eos_id, WORDS.unk_id) == (0, 1, 2, 3)
    assert (SMALL_BYTES.pad_id, SMALL_BYTES.cls_id, SMALL_BYTES.bos_id) == (0, 1, None)
    assert BYTES.vocab_size == 275  # the text has no more pairs to learn


def test_each_model_reads_its_special_tokens_around_the_text() -> None:
    assert labels(character_tokenizer("ab", DECODER), "ab") == ["<s>", "a", "b"]
    assert labels(character_tokenizer("ab", SOURCE), "ab") == ["a", "b", "</s>"]
    assert labels(character_tokenizer("ab", CLASSIFIER), "ab") == ["<cls>", "a", "b"]
    assert WORDS.target_ids("the cat") == [1, *WORDS.ids("the cat")[:-1], 2]
    with pytest.raises(TextError, match="has no '</s>'"):
        BYTES.target_ids("the")


def test_what_is_invisible_gets_a_label() -> None:
    assert labels(BYTES, "a\n\t\u202eb\u00a0")[1:] == [
        "a", "↵", "⇥", "<0xE2>", "<0x80>", "<0xAE>", "b", "<0xC2>", "<0xA0>",
    ]  # fmt: skip
    wide = character_tokenizer("\u202e\u0301 \0")
    assert labels(wide, "\u202e\u0301 \0")[1:] == ["<U+202E>", "◌\u0301", "␣", "<U+0000>"]
    assert "␣the" in labels(BYTES, "on the mat")


def test_an_emoji_is_several_tokens_over_one_character() -> None:
    tokens = BYTES.encode("a 🙂")
    assert [(t.label, t.start, t.end) for t in tokens[-4:]] == [
        ("<0xF0>", 2, 3), ("<0x9F>", 2, 3), ("<0x99>", 2, 3), ("<0x82>", 2, 3),
    ]  # fmt: skip
    assert BYTES.decode([token.id for token in tokens]) == "a 🙂"


def test_unknown_words_and_letters_are_marked_and_keep_their_place() -> None:
    assert WORDS.encode("The owl sat")[1] == Token(WORDS.unk_id or -1, "<unk>", 4, 7)
    assert labels(CHARACTERS, "aשb") == ["a", "<unk>", "b", "</s>"]
    assert labels(CHARACTERS, "A") == ["<unk>", "</s>"]


@ALL
@pytest.mark.parametrize("text", ["<s>", "a<pad>b", "</s> <unk>", "<cls><s>", "the <s> cat"])
def test_typed_text_never_becomes_a_special_token(tokenizer: Tokenizer, text: str) -> None:
    typed = [token for token in tokenizer.encode(text) if not token.special]
    assert not {token.id for token in typed} & tokenizer.special_ids
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.encode(text) == tokenizer.encode(text)


def test_learning_from_text_full_of_special_tokens_makes_none() -> None:
    tokenizer = byte_tokenizer("<s><pad> <s> <pad></s>" * 500, 300)
    typed = {token.id for token in tokenizer.encode("<s><pad>") if not token.special}
    assert not typed & tokenizer.special_ids
    words = word_tokenizer(["<s>", "<pad>", "cat"])
    assert words.vocab_size == 4


@ALL
@given(text=st.text(max_size=60))
def test_spans_cover_the_text_in_order(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokenizer.encode(text)
    starts = [token.start for token in tokens]
    assert starts == sorted(starts)
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens)
    assert all(token.label and token.label.isprintable() for token in tokens)
    covered = {i for token in tokens for i in range(token.start, token.end)}
    lost = {text[i] for i in range(len(text)) if i not in covered}
    assert not lost if tokenizer is not WORDS else all(not c.isalnum() for c in lost)


@given(text=st.text(max_size=200))
def test_bytes_read_any_text_and_give_it_back(text: str) -> None:
    assert BYTES.decode(BYTES.ids(text)) == text
    assert BYTES.corpus_ids(text) == BYTES.ids(text)[1:]


def test_too_much_text_and_broken_text_are_refused_in_a_sentence() -> None:
    with pytest.raises(TextError, match=r"20,001 characters; at most 20,000 fit"):
        BYTES.encode("a" * (MAX_CHARACTERS + 1))
    assert len(BYTES.encode("a" * MAX_CHARACTERS)) > 1
    for tokenizer in (BYTES, CHARACTERS, WORDS):
        with pytest.raises(TextError, match=r"Character 3 \(U\+D83D\) is half"):
            tokenizer.encode("ab\ud83d")


def test_numbers_outside_the_vocabulary_are_refused() -> None:
    with pytest.raises(TextError, match="Token 999 is not in the vocabulary of 275"):
        BYTES.label(999)


@ALL
def test_round_trip_through_json(tokenizer: Tokenizer) -> None:
    again = Tokenizer.from_json(tokenizer.to_json())
    text = "The cat sat. é🙂 zz"
    assert again.to_json() == tokenizer.to_json()
    assert again.encode(text) == tokenizer.encode(text)
    assert (again.kind, again.lowercase) == (tokenizer.kind, tokenizer.lowercase)


def test_learning_the_merges_twice_gives_the_same_tokenizer() -> None:
    assert byte_tokenizer(CORPUS, 320).to_json() == byte_tokenizer(CORPUS, 320).to_json()


def test_a_vocabulary_that_cannot_be_is_refused(subtests: pytest.Subtests) -> None:
    for size in [10, 257, 1_000_000]:
        with subtests.test(size=size), pytest.raises(TextError, match="258 to 50,000"):
            byte_tokenizer(CORPUS, size)
