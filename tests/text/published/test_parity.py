"""Families that have a tokenizer.json alone read as the reference library does."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing

from explorer.text import open_published
from tests.text.published.tokenizer_folders import CORPUS, TEXTS

LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def bytes_of(splits: pre_tokenizers.PreTokenizer, **options: Any) -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(models.BPE(**options))
    library.pre_tokenizer = splits
    library.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator(CORPUS, trainer)
    return library


def neox() -> tokenizers.Tokenizer:
    library = bytes_of(pre_tokenizers.ByteLevel(add_prefix_space=False))
    library.normalizer = normalizers.NFC()
    library.add_special_tokens([AddedToken("<|endoftext|>", special=True)])
    library.add_tokens([AddedToken(" " * count, normalized=True) for count in range(9, 1, -1)])
    return library


def llama3() -> tokenizers.Tokenizer:
    words = pre_tokenizers.Split(Regex(LLAMA_3), "isolated")
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library = bytes_of(pre_tokenizers.Sequence([words, plain]), ignore_merges=True)
    library.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    begin = "<|begin_of_text|>"
    library.post_processor = TemplateProcessing(
        single=f"{begin} $A",
        pair=f"{begin} $A {begin}:1 $B:1",
        special_tokens=[(begin, library.token_to_id(begin))],
    )
    return library


def older(stored: str) -> str:
    """The same file as it was written years ago: a merge was one text."""
    whole = json.loads(stored)
    whole["model"]["merges"] = [" ".join(merge) for merge in whole["model"]["merges"]]
    return json.dumps(whole)


@pytest.mark.parametrize("family", ["stablelm", "llama"])
def test_families_that_have_tokenizer_json_alone(tmp_path: Path, family: str) -> None:
    file = tmp_path / "tokenizer.json"
    stored = older(neox().to_str()) if family == "stablelm" else llama3().to_str()
    file.write_text(stored, "utf-8")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(file))
    ours = open_published(tmp_path, family)
    for text in TEXTS:
        expected = theirs(text)["input_ids"]
        tokens = ours.encode(text)
        assert [token.id for token in tokens] == expected, text
        assert ours.decode(expected) == theirs.decode(expected, skip_special_tokens=True)
        assert ours.ids(text, "the cat") == theirs(text, "the cat")["input_ids"]
        places = [token.start for token in tokens if not token.special]
        assert places == sorted(places)
    assert ours.vocab_size == len(theirs)
