"""The tokenizer that belongs to a checkpoint: ours, that of its folder, or bare numbers."""

from __future__ import annotations

from functools import lru_cache

from explorer.text import AnyTokenizer, TextError, Tokenizer, open_published
from explorer.text.numbers import Numbers
from models.checkpoint import Checkpoint
from models.described import OURS

TOKENIZERS_KEPT = 16
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "source.spm",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
)


def tokenizer_of(checkpoint: Checkpoint) -> AnyTokenizer:
    """TextError says in a sentence why there is none that fits."""
    config = checkpoint.config
    if config.patch_size:
        raise TextError("It reads images, and these pages show texts.")
    known = config.src_vocab_size or config.vocab_size
    if checkpoint.family != OURS:
        is_there = any((checkpoint.folder / file).is_file() for file in TOKENIZER_FILES)
        return open_published(checkpoint.folder, checkpoint.family) if is_there else Numbers(known)
    if checkpoint.tokenizer is None:
        raise TextError("It has no tokenizer.json.")
    tokenizer = _ours(checkpoint.tokenizer)
    if tokenizer.vocab_size > known:
        raise TextError("Its tokenizer knows more tokens than it reads.")
    return tokenizer


@lru_cache(maxsize=TOKENIZERS_KEPT)
def _ours(text: str) -> Tokenizer:
    """Kept by its text: the checkpoints of one run all come with the same."""
    return Tokenizer.from_json(text)
