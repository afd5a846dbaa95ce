"""A tokenizer file is read only when every part of it is one this app writes."""

import json
from typing import Any

import pytest

from explorer.text import TextError, Tokenizer, byte_tokenizer, character_tokenizer

BYTES = json.loads(byte_tokenizer("hello hello help", 262).to_json())
CHARACTERS = json.loads(character_tokenizer("ab").to_json())


def changed(stored: dict[str, Any], path: str, value: Any) -> str:
    copy = json.loads(json.dumps(stored))
    *parents, last = path.split(".")
    place = copy
    for name in parents:
        place = place[int(name) if isinstance(place, list) else name]
    place[last] = value
    return json.dumps(copy)


def test_other_files_are_refused_in_a_sentence(subtests: pytest.Subtests) -> None:
    for text, sentence in [
        ("", "not readable JSON"),
        ("[" * 100_000, "not readable JSON"),
        ("[]", "it has no model"),
        ('{"model": 3}', "it has no model"),
        (changed(BYTES, "padding", {"strategy": {"Fixed": 2**40}}), "it asks for padding"),
        (changed(BYTES, "truncation", {"max_length": 3}), "it asks for truncation"),
        (changed(BYTES, "normalizer", {"type": "NFKC"}), "it changes the text"),
        (changed(BYTES, "model.type", "Unigram"), "only character, word and byte-level"),
        (changed(BYTES, "model.dropout", 0.5), "its BPE has options"),
        (changed(BYTES, "pre_tokenizer", None), "it splits or joins"),
        (changed(CHARACTERS, "pre_tokenizer.pattern", {"Regex": "(a*)*b"}), "it splits or joins"),
        (changed(BYTES, "model.vocab", {}), "it has no vocabulary"),
        (changed(BYTES, "model.vocab", [["a", 1]]), "it has no vocabulary"),
        (changed(CHARACTERS, "model.vocab.a", 99), "does not number its tokens"),
        (changed(CHARACTERS, "model.vocab.a", "3"), "does not number its tokens"),
        (changed(CHARACTERS, "model.unk_token", "q"), "it has no unknown token"),
        (changed(BYTES, "model.vocab.🙂", 262), "a token is not made of bytes"),
        (changed(BYTES, "model.merges", None), "it has no merges"),
        (changed(BYTES, "model.merges", [["h"]]), "a merge is not a pair"),
        (changed(BYTES, "model.merges", [["h", "z"]]), "outside the vocabulary"),
        (changed(BYTES, "post_processor", None), "does not say which special tokens"),
        (changed(BYTES, "post_processor.single", []), "surrounds a text in a way"),
        (changed(BYTES, "post_processor.special_tokens", {}), "are not in the vocabulary"),
        (changed(BYTES, "added_tokens", []), "its special tokens are unknown"),
    ]:
        with subtests.test(text=text), pytest.raises(TextError, match=sentence):
            Tokenizer.from_json(text)
