"""The tokenizer of a checkpoint: ours, the one in its folder, or typed token IDs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from explorer.text import AnyTokenizer, open_published, trained_with
from explorer.text.checked_text import TextError, checked
from explorer.text.token import Token
from models.config import TransformerConfig
from models.families import FAMILIES
from models.loading.checkpoint import Checkpoint, peek
from models.loading.checkpoint_tokenizer import has_tokenizer, tokenizer_place, tokenizer_text
from models.loading.folder_config import OURS

TYPE_IDS = "This model came without a tokenizer, so type token IDs such as 5 17 3."


class TypedTokenIds(AnyTokenizer):
    """Every word of the text is a token ID."""

    kind = "numbers"
    lowercase = False
    pad_id = bos_id = eos_id = unk_id = cls_id = sep_id = mask_id = None
    special_ids = frozenset()

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def id_of(self, entry: str) -> int:
        if not (entry.isascii() and entry.isdigit()) or len(entry) > 9:
            raise TextError(TYPE_IDS)
        if int(entry) >= self.vocab_size:
            raise TextError(
                f"Token {entry} does not exist: this model has {self.vocab_size:,}, from 0 on."
            )
        return int(entry)

    def encode(self, text: str, pair: str | None = None) -> tuple[Token, ...]:
        second = self._tokens(pair, segment=1) if pair else ()
        return (*self._tokens(text), *second)

    def _tokens(self, text: str, segment: int = 0) -> tuple[Token, ...]:
        tokens, end = [], 0
        for word in checked(text).split():
            start = text.index(word, end)
            end = start + len(word)
            number = self.id_of(word)
            tokens.append(Token(number, word, start, end, segment=segment, second=bool(segment)))
        return tuple(tokens)

    def decode(self, ids: list[int]) -> str:
        return " ".join(map(str, ids))

    def label(self, token_id: int) -> str:
        return str(token_id)


def tokenizer_of(checkpoint: Checkpoint) -> AnyTokenizer:
    """The tokenizer of a checkpoint. TextError says in a sentence why none fits."""
    family = checkpoint.family
    family = tokenizer_family(checkpoint.run) if family == OURS else family
    if (own := checkpoint.tokenizer) is None:
        return _tokenizer(checkpoint.folder, family, checkpoint.config, None)
    return _tokenizer(own.place, family, checkpoint.config, own.text)


def tokenizer_family(run: Mapping[str, Any]) -> str:
    """The family of the tokenizer of our checkpoint: that of the model it was fine-tuned from."""
    named = run.get("tokenizer")
    return named if isinstance(named, str) and named in FAMILIES else OURS


def tokenizer_in(folder: Path, family: str, config: TransformerConfig) -> AnyTokenizer:
    """The tokenizer in a folder, without its weights. CheckpointError where a file is damaged."""
    family = tokenizer_family(peek(folder)[1]) if family == OURS else family
    return _tokenizer(tokenizer_place(folder), family, config, tokenizer_text(folder))


def _tokenizer(
    folder: Path, family: str, config: TransformerConfig, text: str | None
) -> AnyTokenizer:
    rows = config.src_vocab_size or config.vocab_size
    if family != OURS:
        return open_published(folder, family) if has_tokenizer(folder) else TypedTokenIds(rows)
    if text is None:
        raise TextError("It has no tokenizer.json.")
    tokenizer = trained_with(text)
    if tokenizer.vocab_size > rows:
        raise TextError("Its tokenizer has more tokens than its embedding has rows.")
    return tokenizer
