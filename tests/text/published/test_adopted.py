"""A stranger's tokenizer gets the special tokens that a model made here reads, and stays itself."""

import json
from typing import Any

import pytest
import tokenizers

from explorer.text import TextError, character_tokenizer, trained_with
from explorer.text.checked_text import MAX_CHARACTERS
from explorer.text.published.adopted import (
    MOST_ADOPTED_TOKENS,
    AdoptedTokenizer,
    adopted,
    adopted_json,
    is_adopted,
)
from explorer.text.token import CLASSIFIER, DECODER, SOURCE, SPECIALS
from explorer.text.tokenizer import special_entry
from tests.text.published.conftest import Made

Strangers = dict[str, tokenizers.Tokenizer]


@pytest.fixture(scope="module")
def strangers(made: Made) -> Strangers:
    """One of byte pairs, one of word pieces, and one of sentencepiece."""
    files = {name: made(f"{name}.json") / "tokenizer.json" for name in ("gpt2", "bert", "t5")}
    return {name: tokenizers.Tokenizer.from_file(str(file)) for name, file in files.items()}


def test_the_text_is_read_as_before(strangers: Strangers, subtests: pytest.Subtests) -> None:
    text = "the cat sat"
    for name, stranger in strangers.items():
        for reads in (DECODER, SOURCE, CLASSIFIER):
            with subtests.test(name=name, reads=reads):
                found = AdoptedTokenizer(adopted_json(stranger.to_str(), reads))
                plain = stranger.encode(text, add_special_tokens=False).ids
                assert found.many_ids([text, ""], special=False) == [plain, []]
                ends = {each: found.id_of(each) for each in SPECIALS[reads]}
                around = [[ends[each]] if each in ends else plain for each in reads]
                assert found.ids(text) == [*around[0], *around[1]] == found.many_ids([text])[0]
                assert len(set(ends.values())) == len(ends)
                assert not set(ends.values()) & set(plain)
                assert max(ends.values()) < found.vocab_size
                assert found.decode(found.ids(text)) == text
                assert found.pad_id == ends["<pad>"]
                typed = found.many_ids(["<s> <pad> </s> <cls>"], special=False)[0]
                assert not set(typed) & set(ends.values()), "typed text is no special token"


def test_a_name_that_is_there_is_not_added(strangers: Strangers) -> None:
    found = AdoptedTokenizer(adopted_json(strangers["t5"].to_str(), SOURCE))
    assert (found.id_of("<pad>"), found.id_of("</s>"), found.unk_id) == (0, 1, 2)
    assert found.vocab_size == strangers["t5"].get_vocab_size() + 1


def test_what_is_stored_is_opened_again_and_any_library_reads_it(strangers: Strangers) -> None:
    for stranger in strangers.values():
        text = adopted_json(stranger.to_str(), DECODER)
        assert is_adopted(text)
        again = trained_with(text)
        assert again.to_json() == text
        assert again.ids("the cat") == tokenizers.Tokenizer.from_str(text).encode("the cat").ids
        assert adopted_json(text, DECODER) == text


def test_a_vocabulary_with_gaps_keeps_its_numbers(strangers: Strangers) -> None:
    gap = json.loads(strangers["bert"].to_str()) | {"added_tokens": [], "post_processor": None}
    gap["model"]["vocab"] = {"[UNK]": 0, "cat": 7}
    found = AdoptedTokenizer(adopted_json(json.dumps(gap), DECODER))
    assert found.ids("cat dog") == [9, 7, 0]
    assert (found.pad_id, found.vocab_size) == (8, 10)


def test_a_long_text_is_tokenized_in_parts_that_end_in_lines(strangers: Strangers) -> None:
    found = AdoptedTokenizer(adopted_json(strangers["gpt2"].to_str(), DECODER))
    text = "the cat sat on the mat\n" * (2 * MAX_CHARACTERS // 20)
    whole = strangers["gpt2"].encode(text, add_special_tokens=False).ids
    assert found.corpus_ids(text) == whole
    assert found.decode(found.corpus_ids("a" * 50_000)) == "a" * 50_000


def test_one_of_ours_is_taken_as_it_is_where_it_has_the_ends() -> None:
    ours = character_tokenizer("abc").to_json()
    assert adopted(ours, DECODER).to_json() == ours
    assert adopted(ours, SOURCE).id_of("</s>") == 6
    assert not is_adopted(character_tokenizer("abc", SOURCE).to_json().replace("</s>", "<end>"))


def test_what_describes_none_is_refused_in_a_sentence(
    strangers: Strangers, subtests: pytest.Subtests
) -> None:
    sound = json.loads(strangers["bert"].to_str())

    def changed(**parts: Any) -> str:
        return json.dumps(sound | parts)

    gap = sound["model"] | {"vocab": {"[UNK]": 0, "a": 7}}
    beyond = special_entry("[X]", 9)
    many = {str(number): number for number in range(MOST_ADOPTED_TOKENS + 1)}
    for text, sentence in (
        ("", "not readable JSON: choose another one"),
        ("[" * 100_000, "not readable JSON"),
        ("[]", "it has no model"),
        (changed(model={"type": "WordLevel"}), "does not describe a tokenizer"),
        (changed(added_tokens=[{"id": "x"}]), "does not describe a tokenizer"),
        (changed(model={"type": "WordLevel", "vocab": many}), "at most 60,000 are trained with"),
        (changed(model={"type": "Magic", "vocab": {"a": 0}}), "cannot be opened: it is none of"),
        (changed(model=gap, added_tokens=[beyond]), "not numbered one after another"),
        ("x" * 12_000_001, "at most 12,000,000 are stored with a run"),
    ):
        with subtests.test(sentence=sentence), pytest.raises(TextError, match=sentence):
            AdoptedTokenizer(adopted_json(text, DECODER))
