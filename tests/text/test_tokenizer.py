"""Our own tokenizers: labels, spans, special tokens, files, steps, and text made to break them."""

import json
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.text import (
    CLASSIFIER,
    DECODER,
    MAX_CHARACTERS,
    MAX_STEPPED_CHARACTERS,
    SOURCE,
    Piece,
    TextError,
    Token,
    Tokenizer,
    byte_tokenizer,
    character_tokenizer,
    steps,
    word_tokenizer,
    words_of,
)
from explorer.text import tokenizer as plain
from tests.models.loading.mutations import changed_json

CORPUS = "the cat sat on the mat. the dog saw the cat; the dog sat.\n" * 20
BYTES = byte_tokenizer(CORPUS, 300)
SMALL_BYTES = byte_tokenizer(CORPUS, 300, CLASSIFIER, lowercase=True)
EMOJI = byte_tokenizer(CORPUS + "🙂🙃 שלום é" * 30, 330, CLASSIFIER, lowercase=True)
LETTERS = character_tokenizer("abc 🙂ש", lowercase=True)
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
    for reads, read in ((DECODER, "<s> a b"), (SOURCE, "a b </s>"), (CLASSIFIER, "<cls> a b")):
        assert labels(character_tokenizer("ab", reads), "ab") == read.split()
    with pytest.raises(TextError, match="has no '</s>'"):
        BYTES.id_of("</s>")


def test_what_is_invisible_gets_a_label() -> None:
    assert labels(BYTES, "a\n\t\u202eb\u00a0")[1:] == [
        "a", "↵", "⇥", "<0xE2>", "<0x80>", "<0xAE>", "b", "<0xC2>", "<0xA0>",
    ]  # fmt: skip
    wide = character_tokenizer("\u202e\u0301 \0")
    assert labels(wide, "\u202e\u0301 \0")[1:] == ["<U+202E>", "◌\u0301", "␣", "<U+0000>"]
    assert "␣the" in labels(BYTES, "on the mat")


def test_an_emoji_is_several_tokens_over_one_character_and_what_is_unknown_one() -> None:
    tokens = BYTES.encode("a 🙂")
    assert [(t.label, t.start, t.end) for t in tokens[-4:]] == [
        ("<0xF0>", 2, 3), ("<0x9F>", 2, 3), ("<0x99>", 2, 3), ("<0x82>", 2, 3),
    ]  # fmt: skip
    assert BYTES.decode([token.id for token in tokens]) == "a 🙂"
    assert WORDS.encode("The owl sat")[1] == Token(WORDS.unk_id or -1, "<unk>", 4, 7)
    assert labels(CHARACTERS, "aשb") == ["a", "<unk>", "b", "</s>"]
    assert labels(CHARACTERS, "A") == ["<unk>", "</s>"]


@ALL
def test_typed_text_is_no_special_token_nor_after_a_trip_through_json(tokenizer: Tokenizer) -> None:
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.to_json() == tokenizer.to_json()
    assert (again.kind, again.lowercase) == (tokenizer.kind, tokenizer.lowercase)
    for text in ["<s>", "a<pad>b", "</s> <unk>", "<cls><s>", "the <s> cat", "The sat. é🙂 zz"]:
        typed = [token for token in tokenizer.encode(text) if not token.special]
        assert not {token.id for token in typed} & tokenizer.special_ids
        assert again.encode(text) == tokenizer.encode(text)


def test_learning_from_text_full_of_special_tokens_makes_none() -> None:
    tokenizer = byte_tokenizer("<s><pad> <s> <pad></s>" * 500, 300)
    typed = {token.id for token in tokenizer.encode("<s><pad>") if not token.special}
    assert not typed & tokenizer.special_ids
    assert word_tokenizer(["<s>", "<pad>", "cat"]).vocab_size == 4


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


def test_too_much_text_broken_text_and_what_cannot_be_are_refused_in_a_sentence() -> None:
    with pytest.raises(TextError, match=r"20,001 characters; the limit is 20,000"):
        BYTES.encode("a" * (MAX_CHARACTERS + 1))
    assert len(BYTES.encode("a" * MAX_CHARACTERS)) > 1
    for tokenizer in (BYTES, CHARACTERS, WORDS):
        with pytest.raises(TextError, match=r"Character 3 \(U\+D83D\) is an unpaired"):
            tokenizer.encode("ab\ud83d")
    with pytest.raises(TextError, match="Token 999 is not in the vocabulary of 275"):
        BYTES.label(999)
    for size in [10, 257, 1_000_000]:
        with pytest.raises(TextError, match="258 to 50,000"):
            byte_tokenizer(CORPUS, size)


ODD = ("|🙂👨‍👩‍👧|שלום the|\0\x07\r\n|İstanbul ẞ|e\u0301|<s>| the  the |\u2028").split("|")
LIKELY = st.lists(st.sampled_from(["the", " ", "cat", "sat", "🙂", "\n", "שלום", "İ", "a", "é"]))


def shown(pieces: Iterable[Piece | Token]) -> list[tuple[object, ...]]:
    return [(p.id, p.label, p.start, p.end, p.special) for p in pieces]


def assert_ends_in_the_encoding(tokenizer: Tokenizer, text: str) -> None:
    taken, expected = steps(tokenizer, text), shown(tokenizer.encode(text))
    assert shown(taken[-1].pieces) == expected
    # The special tokens are all that the last step adds: the merges came to the end by themselves.
    assert shown(taken[-2].pieces) == [token for token in expected if not token[-1]]


@pytest.mark.parametrize("tokenizer", [BYTES, EMOJI, LETTERS, WORDS])
@given(texts=st.tuples(st.text(max_size=80) | LIKELY.map("".join), st.sampled_from(ODD)))
def test_the_steps_of_any_text(tokenizer: Tokenizer, texts: tuple[str, str]) -> None:
    for text in texts:
        assert_ends_in_the_encoding(tokenizer, text[:200])


@pytest.mark.parametrize("size", [1, 7])
def test_a_long_text_is_read_in_parts_as_in_one(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = " a\n b\t'sé e\u0301\u3000é.\xa0你好 😀1  Ab\n" * 3
    letters, read = character_tokenizer(list("ab é")), word_tokenizer(["a", "Ab"])
    kinds = (byte_tokenizer(text, 270), letters, read)
    whole = [*(kind.corpus_ids(text) for kind in kinds), words_of(text)]
    monkeypatch.setattr(plain, "CORPUS_PART", re.compile(rf"[\s\S]{{1,{size}}}\s*\S*"))
    assert len([*plain._parts(text)]) > 6
    assert [*(kind.corpus_ids(text) for kind in kinds), words_of(text)] == whole


def test_merges_come_in_the_order_they_were_learnt() -> None:
    taken = steps(BYTES, "the cat sat on the mat")
    ranks = [step.rank for step in taken if step.rank is not None]
    assert ranks == sorted(ranks)
    assert len(ranks) > 3


def test_a_step_says_what_it_did() -> None:
    actions = [step.action for step in steps(BYTES, "the the")]
    assert actions[:3] == [
        "The text as it was typed.",
        "Split into words, each with the space before it; no token spans two of them.",
        "Write each character as its bytes.",
    ]
    assert actions[3].startswith("Merge h and e (merge ")
    assert "1 of 2 are not in it: <unk>." in steps(WORDS, "the owl")[-2].action


def test_the_stepper_is_bounded() -> None:
    steps(BYTES, "the cat sat " * 80)
    with pytest.raises(TextError, match="1,001 characters"):
        steps(BYTES, "a" * (MAX_STEPPED_CHARACTERS + 1))
    with pytest.raises(TextError, match="unpaired surrogate"):
        steps(BYTES, "\udc00")


STORED = json.loads(byte_tokenizer("hello hello help", 262).to_json())
STORED_LETTERS = json.loads(character_tokenizer("ab").to_json())


@given(text=changed_json(STORED).map(json.dumps) | changed_json(STORED_LETTERS).map(json.dumps))
def test_a_changed_file_is_read_as_it_is_written_or_refused_in_a_sentence(text: str) -> None:
    sentence = ""
    try:
        tokenizer = Tokenizer.from_json(text)
    except TextError as refusal:
        sentence = str(refusal)
    if sentence:
        assert re.fullmatch(r"[^\n]{9,290}[^.]\.", sentence)
    else:
        assert json.loads(tokenizer.to_json())["model"] == json.loads(text)["model"]


def test_a_file_is_read_only_when_this_app_writes_every_part_of_it() -> None:
    model, letters = STORED["model"], STORED_LETTERS["model"]
    for content, sentence in [
        ("", "not readable JSON"),
        ("[" * 100_000, "not readable JSON"),
        ([], "it has no model"),
        (STORED | {"padding": {"strategy": {"Fixed": 2**40}}}, "it asks for padding"),
        (STORED | {"truncation": {"max_length": 3}}, "it asks for truncation"),
        (STORED | {"normalizer": {"type": "NFKC"}}, "it changes the text"),
        (STORED | {"model": model | {"type": "Unigram"}}, "only character, word and byte-level"),
        (STORED | {"model": model | {"dropout": 0.5}}, "its BPE has options"),
        (STORED | {"pre_tokenizer": None}, "it splits or joins"),
        (STORED | {"model": model | {"merges": [["h", "z"]]}}, "outside the vocabulary"),
        (STORED | {"post_processor": None}, "does not say which special tokens"),
        (STORED | {"added_tokens": []}, "its special tokens are unknown"),
        (STORED_LETTERS | {"model": letters | {"unk_token": "q"}}, "no unknown token"),
    ]:
        text = content if isinstance(content, str) else json.dumps(content)
        with pytest.raises(TextError, match=sentence):
            Tokenizer.from_json(text)
