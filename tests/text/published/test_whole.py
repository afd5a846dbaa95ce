"""tokenizer.json of the families that have no other form, read as it is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
import transformers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing

from explorer.text import open_published
from tests.grids import grid
from tests.text.published.making import CORPUS, TEXTS

LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BLOOM = r" ?[^(\s|[.,!?…。,、।۔،])]+"


def bytes_of(splits: pre_tokenizers.PreTokenizer, **options: Any) -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(models.BPE(**options))
    library.pre_tokenizer = splits
    library.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator(CORPUS, trainer)
    return library


def split(regex: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(regex), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def neox() -> tokenizers.Tokenizer:
    library = bytes_of(pre_tokenizers.ByteLevel(add_prefix_space=False))
    library.normalizer = normalizers.NFC()
    library.add_special_tokens([AddedToken("<|endoftext|>", special=True)])
    library.add_tokens([AddedToken(" " * count, normalized=True) for count in range(9, 1, -1)])
    return library


def bloom() -> tokenizers.Tokenizer:
    library = bytes_of(split(BLOOM))
    library.add_special_tokens(["<unk>", "<s>", "</s>", "<pad>"])
    return library


def llama3() -> tokenizers.Tokenizer:
    library = bytes_of(split(LLAMA_3), ignore_merges=True)
    library.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    begin = "<|begin_of_text|>"
    library.post_processor = TemplateProcessing(
        single=f"{begin} $A",
        pair=f"{begin} $A {begin}:1 $B:1",
        special_tokens=[(begin, library.token_to_id(begin))],
    )
    return library


def phi3() -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    library.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    special = ["<unk>", "<s>", "</s>", *[f"<0x{byte:02X}>" for byte in range(256)]]
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False)
    words = " ".join(CORPUS).split(" ")
    library.train_from_iterator(words, trainer)
    stored = json.loads(library.to_str())
    stored["added_tokens"] = stored["added_tokens"][:3]
    library = tokenizers.Tokenizer.from_str(json.dumps(stored))
    library.add_tokens([AddedToken("<|user|>", special=True, rstrip=True)])
    library.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return library


MADE: dict[str, tuple[str, Callable[[], tokenizers.Tokenizer]]] = {
    "GPT-NeoX": ("gpt_neox", neox),
    "BLOOM": ("bloom", bloom),
    "Llama 3": ("llama", llama3),
    "Phi-3": ("phi3", phi3),
}


def older(stored: str) -> str:
    """The same file as it was written years ago: a merge was one text."""
    whole = json.loads(stored)
    whole["model"]["merges"] = [" ".join(merge) for merge in whole["model"]["merges"]]
    return json.dumps(whole)


@grid("written, name", [str, older], MADE)
def test_it_reads_and_writes_as_the_reference_does(
    tmp_path: Path, name: str, written: Callable[[str], str]
) -> None:
    family, make = MADE[name]
    file = tmp_path / "tokenizer.json"
    file.write_text(written(make().to_str()), "utf-8")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(file))
    ours = open_published(tmp_path, family)
    for text in TEXTS:
        expected = theirs(text)
        tokens = ours.encode(text)
        assert [token.id for token in tokens] == expected["input_ids"], text
        assert ours.decode([t.id for t in tokens]) == theirs.decode(
            expected["input_ids"], skip_special_tokens=True
        )
        assert ours.ids(text, "the cat") == theirs(text, "the cat")["input_ids"]
        places = [token.start for token in tokens if not token.special]
        assert places == sorted(places)
    assert ours.vocab_size == len(theirs)


def test_settings_may_put_the_start_before_a_text(tmp_path: Path) -> None:
    """A folder whose tokenizer.json says nothing of it, and one whose settings take it away."""
    begin = "<|begin_of_text|>"
    library = llama3()
    with_start = library.to_str()
    library.post_processor = None
    for stored, wanted in ((library.to_str(), True), (with_start, False)):
        (tmp_path / "tokenizer.json").write_text(stored, "utf-8")
        said = {"add_bos_token": wanted, "bos_token": begin, "eos_token": "<|end_of_text|>"}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(said))
        labels = [token.label for token in open_published(tmp_path, "llama").encode("the")]
        assert labels == ([begin, "the"] if wanted else ["the"])
