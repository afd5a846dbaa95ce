"""Every form and family reads as the reference library does: same numbers, pairs, segments."""

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing

from explorer.text import PublishedTokenizer, open_published
from models.loading.checkpoint_tokenizer import tokenizer_of_folder
from tests.text.published.conftest import Made, OpenModel, reference_of
from tests.text.published.tokenizer_folders import CORPUS, FOLDERS, TEXTS

Reference = Callable[[str], Any]


@pytest.fixture(scope="module")
def reference(made: Made) -> Reference:
    return cache(partial(reference_of, made))


def assert_the_same_text_comes_back(ours: PublishedTokenizer, theirs: Any) -> None:
    """Of texts without the unknown token, which is shown here and left out there."""
    for text in ("the cat sat on the mat.", "it's the dog; the cat"):
        ids = ours.ids(text)
        assert ours.decode(ids).strip() == theirs.decode(ids, skip_special_tokens=True).strip()


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_reads_as_reference(opened: OpenModel, reference: Reference, name: str) -> None:
    ours, theirs = opened(name), reference(name)
    for text in TEXTS:
        assert ours.ids(text) == theirs(text)["input_ids"], text
    for text, pair in zip(TEXTS[:9], reversed(TEXTS[:9]), strict=True):
        expected = theirs(text, pair, return_token_type_ids=True)
        tokens = ours.encode(text, pair)
        assert [token.id for token in tokens] == expected["input_ids"]
        if ours.kind == "wordpiece":
            assert [token.segment for token in tokens] == expected["token_type_ids"]
        typed = [token.second for token in tokens if not token.special]
        assert typed == sorted(typed)
        assert len(set(typed)) == 2
    assert_the_same_text_comes_back(ours, theirs)
    assert ours.vocab_size == max(theirs.get_vocab().values()) + 1
    for role in ("pad", "eos", "mask"):
        if getattr(ours, f"{role}_id") is not None:
            assert getattr(ours, f"{role}_id") == getattr(theirs, f"{role}_token_id"), role


@pytest.mark.parametrize("name", ["bert", "gpt2", "roberta", "xlm-roberta", "t5", "llama", "gemma"])
def test_the_saved_file(made: Made, opened: OpenModel, reference: Reference, name: str) -> None:
    """tokenizer.json is read in its own right, by the core too, and wins over the older forms."""
    older, whole = opened(name), opened(f"{name}.json")
    assert whole.form == "tokenizer.json"
    for text in TEXTS:
        assert whole.ids(text) == reference(name)(text)["input_ids"], text
    core: Any = tokenizer_of_folder(made(f"{name}.json"))
    for text in (*TEXTS, "the [MASK] sat<mask> on", "</s> a<s> <|endoftext|>"):
        ids = core.encode(text)
        assert (ids, core.decode(ids)) == (whole.ids(text), whole.decode(ids)), text
    assert_the_same_text_comes_back(whole, reference(name))
    assert (older.vocab_size, older.eos_id) == (whole.vocab_size, whole.eos_id)


def test_a_typed_mask_is_the_mask(opened: OpenModel, reference: Reference) -> None:
    for name in ["bert", "roberta", "xlm-roberta", "mbart"]:
        ours = opened(name)
        assert ours.mask_id is not None
        mask = ours.label(ours.mask_id)
        text = f"the {mask} sat on{mask}"
        tokens = ours.encode(text)
        if name != "roberta":  # its reference lost the word that a mask takes its space with it
            assert [token.id for token in tokens] == reference(name)(text)["input_ids"], name
        found = [token for token in tokens if token.id == ours.mask_id]
        assert [text[token.start : token.end].strip() for token in found] == [mask, mask], name
        assert all(token.special for token in found), name


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
