"""The tokenizer that belongs to a checkpoint: ours, that of its folder, or bare numbers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from explorer.text import AnyTokenizer, TextError, open_published, trained_with
from explorer.text.token_ids import TypedTokenIds
from models.config import TransformerConfig
from models.families import FAMILIES
from models.loading.checkpoint import Checkpoint, peek
from models.loading.checkpoint_tokenizer import has_tokenizer, tokenizer_text
from models.loading.folder_config import OURS


def tokenizer_of(checkpoint: Checkpoint) -> AnyTokenizer:
    """TextError says in a sentence why there is none that fits."""
    family = checkpoint.family
    family = tokenizer_family(checkpoint.run) if family == OURS else family
    text = None if checkpoint.tokenizer is None else checkpoint.tokenizer.text
    return _fitting(checkpoint.folder, family, checkpoint.config, text)


def tokenizer_family(run: Mapping[str, Any]) -> str:
    """The family whose tokenizer a checkpoint of ours has: that of the model it started from."""
    named = run.get("tokenizer")
    return named if isinstance(named, str) and named in FAMILIES else OURS


def tokenizer_in(folder: Path, family: str, config: TransformerConfig) -> AnyTokenizer:
    """The same of a folder, whose weights are not read. CheckpointError where a file is broken."""
    family = tokenizer_family(peek(folder)[1]) if family == OURS else family
    return _fitting(folder, family, config, tokenizer_text(folder))


def _fitting(
    folder: Path, family: str, config: TransformerConfig, text: str | None
) -> AnyTokenizer:
    known = config.src_vocab_size or config.vocab_size
    if family != OURS:
        return open_published(folder, family) if has_tokenizer(folder) else TypedTokenIds(known)
    if text is None:
        raise TextError("It has no tokenizer.json.")
    tokenizer = trained_with(text)
    if tokenizer.vocab_size > known:
        raise TextError("Its tokenizer has more tokens than its embedding has rows.")
    return tokenizer
