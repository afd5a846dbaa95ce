"""A tokenizer of the `tokenizers` library with readable labels.

The library does the work; this adds a label and a span in the typed text for every
token, limits, and the guarantee that typed text never becomes a special token.
"""

from collections.abc import Sequence

import tokenizers

from explorer.system import limits
from explorer.text.checked_text import TextError, checked
from explorer.text.labels import bytes_of, readable, readable_bytes
from explorer.text.special import BOS, CLS, EOS, PAD, UNKNOWN
from explorer.text.stored import check_stored
from explorer.text.token import Token

__all__ = ["Token", "Tokenizer"]


class Tokenizer:
    """Text to tokens and back, in the way one model reads it."""

    def __init__(self, library: tokenizers.Tokenizer) -> None:
        # Not part of the library's file format, so it is set on every way in.
        library.encode_special_tokens = True
        self.library = library
        self.special_ids = frozenset(library.get_added_tokens_decoder())
        self.kind = _kind_of(library)
        self.vocab_size: int = library.get_vocab_size()
        self.lowercase = library.normalizer is not None
        roles = (PAD, BOS, EOS, UNKNOWN, CLS)
        ids: list[int | None] = [library.token_to_id(name) for name in roles]
        self.pad_id, self.bos_id, self.eos_id, self.unk_id, self.cls_id = ids
        self.sep_id = self.mask_id = None  # no model made here reads pairs or fills masks
        self._labels: dict[int, str] = {}

    def id_of(self, entry: str) -> int:
        """The ID of an entry of the vocabulary; TextError if it is not there."""
        found = self.library.token_to_id(entry)
        if found is None:
            raise TextError(f"The vocabulary has no {entry[:40]!r}.")
        return int(found)

    def encode(self, text: str, pair: str | None = None) -> tuple[Token, ...]:
        """The tokens the model reads for this text, special tokens included."""
        _single(pair)
        encoding = self.library.encode(checked(text))
        tokens: list[Token] = []
        for token_id, span, special in zip(
            encoding.ids, encoding.offsets, encoding.special_tokens_mask, strict=True
        ):
            if special:
                place = len(text) if token_id == self.eos_id else 0
                span = (place, place)
            tokens.append(Token(token_id, self.label(token_id), *span, special=bool(special)))
        return tuple(tokens)

    def ids(self, text: str, pair: str | None = None) -> list[int]:
        """The token IDs of `encode`, without the labels."""
        _single(pair)
        return self.library.encode(checked(text)).ids

    def target_ids(self, text: str) -> list[int]:
        """What the decoder of an encoder-decoder writes: `<s> … </s>` around the text."""
        written = self.library.encode(checked(text), add_special_tokens=False).ids
        return [self.id_of(BOS), *written, self.id_of(EOS)]

    def corpus_ids(self, text: str) -> list[int]:
        """A long text to train on, without special tokens."""
        corpus = checked(text, limits.CORPUS_CHARACTERS)
        return self.library.encode(corpus, add_special_tokens=False).ids

    def many_ids(self, texts: Sequence[str], *, special: bool = True) -> list[list[int]]:
        """The IDs of each of many short texts, with the special tokens around them or without."""
        encode = self.library.encode
        return [encode(checked(text), add_special_tokens=special).ids for text in texts]

    def decode(self, ids: list[int]) -> str:
        """The text of these tokens; special tokens are left out, an unknown one is shown."""
        return self.library.decode([int(token_id) for token_id in ids], skip_special_tokens=True)

    def label(self, token_id: int) -> str:
        """How to show a token: spaces as ␣, line ends as ↵, part of a character as <0xE2>."""
        if token_id not in self._labels:
            self._labels[token_id] = self._make_label(token_id)
        return self._labels[token_id]

    def token(self, token_id: int) -> Token:
        """A token that was not typed, such as one a model wrote; it has no span."""
        return Token(token_id, self.label(token_id), special=token_id in self.special_ids)

    def to_json(self) -> str:
        """The library's own file format, `tokenizer.json`."""
        return self.library.to_str(pretty=True)

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """A tokenizer that `to_json` wrote; TextError for anything else."""
        check_stored(text)
        try:
            return cls(tokenizers.Tokenizer.from_str(text))
        except Exception as error:
            raise TextError("The tokenizer file does not describe a tokenizer.") from error

    def _make_label(self, token_id: int) -> str:
        token = self.library.id_to_token(token_id)
        if token is None:
            raise TextError(f"Token {token_id} is not in the vocabulary of {self.vocab_size:,}.")
        if token_id in self.special_ids or token == UNKNOWN:
            return token
        return readable_bytes(bytes_of(token)) if self.kind == "bytes" else readable(token)


def _single(pair: str | None) -> None:
    if pair is not None:
        raise TextError("This model reads one text at a time, not a pair.")


def _kind_of(library: tokenizers.Tokenizer) -> str:
    """What a token is: "characters", "words" or "bytes" (byte-level BPE)."""
    if isinstance(library.model, tokenizers.models.BPE):
        return "bytes"
    splits_words = isinstance(library.pre_tokenizer, tokenizers.pre_tokenizers.Whitespace)
    return "words" if splits_words else "characters"
