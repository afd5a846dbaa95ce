"""Tokenizers: labels, spans, special tokens, files, and text that tries to break them."""

import json
from typing import Any

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
def test_typed_text_never_becomes_a_special_token(tokenizer: Tokenizer) -> None:
    again = Tokenizer.from_json(tokenizer.to_json())
    for text in ["<s>", "a<pad>b", "</s> <unk>", "<cls><s>", "the <s> cat"]:
        typed = [token for token in tokenizer.encode(text) if not token.special]
        assert not {token.id for token in typed} & tokenizer.special_ids
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


def test_a_vocabulary_that_cannot_be_is_refused() -> None:
    for size in [10, 257, 1_000_000]:
        with pytest.raises(TextError, match="258 to 50,000"):
            byte_tokenizer(CORPUS, size)


STORED = json.loads(byte_tokenizer("hello hello help", 262).to_json())
LETTERS = json.loads(character_tokenizer("ab").to_json())


def changed(stored: dict[str, Any], path: str, value: Any) -> str:
    copy = json.loads(json.dumps(stored))
    *parents, last = path.split(".")
    place = copy
    for name in parents:
        place = place[int(name) if isinstance(place, list) else name]
    place[last] = value
    return json.dumps(copy)


def test_a_file_is_read_only_when_this_app_writes_every_part_of_it(
    subtests: pytest.Subtests,
) -> None:
    for text, sentence in [
        ("", "not readable JSON"),
        ("[" * 100_000, "not readable JSON"),
        ("[]", "it has no model"),
        ('{"model": 3}', "it has no model"),
        (changed(STORED, "padding", {"strategy": {"Fixed": 2**40}}), "it asks for padding"),
        (changed(STORED, "truncation", {"max_length": 3}), "it asks for truncation"),
        (changed(STORED, "normalizer", {"type": "NFKC"}), "it changes the text"),
        (changed(STORED, "model.type", "Unigram"), "only character, word and byte-level"),
        (changed(STORED, "model.dropout", 0.5), "its BPE has options"),
        (changed(STORED, "pre_tokenizer", None), "it splits or joins"),
        (
            changed(LETTERS, "pre_tokenizer.pattern", {"Regex": "(a*)*b"}),
            "it splits or joins",
        ),
        (changed(STORED, "model.vocab", {}), "it has no vocabulary"),
        (changed(STORED, "model.vocab", [["a", 1]]), "it has no vocabulary"),
        (changed(LETTERS, "model.vocab.a", 99), "does not number its tokens"),
        (changed(LETTERS, "model.vocab.a", "3"), "does not number its tokens"),
        (changed(LETTERS, "model.unk_token", "q"), "it has no unknown token"),
        (changed(STORED, "model.vocab.🙂", 262), "a token is not made of bytes"),
        (changed(STORED, "model.merges", None), "it has no merges"),
        (changed(STORED, "model.merges", [["h"]]), "a merge is not a pair"),
        (changed(STORED, "model.merges", [["h", "z"]]), "outside the vocabulary"),
        (changed(STORED, "post_processor", None), "does not say which special tokens"),
        (changed(STORED, "post_processor.single", []), "surrounds a text in a way"),
        (changed(STORED, "post_processor.special_tokens", {}), "are not in the vocabulary"),
        (changed(STORED, "added_tokens", []), "its special tokens are unknown"),
    ]:
        with subtests.test(text=text), pytest.raises(TextError, match=sentence):
            Tokenizer.from_json(text)
