"""The vocabulary in a GGUF file: tokens with their types and scores, roles and switches.

Everything is asked for by name and type, and its size is bounded: a file is not trusted.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from models.loading.gguf_header import GgufHeader, PackedList
from models.loading.safe_files import CheckpointError, quoted

TOKENIZER_PREFIX = "tokenizer.ggml."
KIND, NO_KIND = TOKENIZER_PREFIX + "model", ("none", "no_vocab")
"""The key of the kind of tokenizer, and its values in a file without one."""
TEMPLATE = "tokenizer.chat_template"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""The types of tokens."""
ROLE_KEYS = {
    "bos": "bos",
    "eos": "eos",
    "unk": "unknown",
    "pad": "padding",
    "cls": "cls",
    "sep": "seperator",
    "mask": "mask",
}
"""The roles of special tokens with their names in the file, spelt as they are there."""
MOST_GGUF_TOKENS, LONGEST_TOKEN = 1_000_000, 10_000
MOST_GGUF_MERGES, MERGES_PER_TOKEN = 1_000_000, 8
"""Published vocabularies have at most three merges for each token."""
LARGEST_LIST = 32 << 20
"""Bytes of a list that is read."""


class Vocabulary:
    """The tokenizer in the metadata of a file. CheckpointError where a value is wrong."""

    def __init__(self, header: GgufHeader) -> None:
        self._values, self._what = header.values, quoted(header.file.name)
        self.architecture = header.values.get("general.architecture")

    @cached_property
    def tokens(self) -> list[str]:
        """Every token, in the order of their IDs."""
        texts = self.texts("tokens")
        if not 0 < len(texts) <= MOST_GGUF_TOKENS:
            raise self.fault(f"has {len(texts):,} tokens, not 1 to {MOST_GGUF_TOKENS:,}")
        if max(map(len, texts)) > LONGEST_TOKEN:
            raise self.fault("has a token that is no short text")
        return [text or f"[EMPTY_{i}]" for i, text in enumerate(texts)]

    @cached_property
    def ids(self) -> dict[str, int]:
        return self.numbered(self.tokens)

    @cached_property
    def types(self) -> Sequence[int]:
        types = self.numbers("token_type") or (NORMAL,) * len(self.tokens)
        if len(types) != len(self.tokens):
            raise self.fault("has types for more or fewer tokens than there are")
        return types

    @cached_property
    def scores(self) -> Sequence[float]:
        scores = self.numbers("scores")
        if len(scores) != len(self.tokens):
            raise self.fault("has scores for more or fewer tokens than there are")
        if not all(-1e30 < score < 1e30 for score in scores):
            raise self.fault("has a score that is no finite number")
        return scores

    def numbered(self, tokens: Sequence[str]) -> dict[str, int]:
        """The ID of each token; a fault where two are the same."""
        ids = {token: i for i, token in enumerate(tokens)}
        if len(ids) < len(tokens):
            twice = next(token for i, token in enumerate(tokens) if ids[token] != i)
            raise self.fault(f"has the token {quoted(twice)} twice")
        return ids

    def check_merges(self, count: int) -> None:
        """A fault where there are more merges than any vocabulary of this size has."""
        most = min(MOST_GGUF_MERGES, MERGES_PER_TOKEN * len(self.tokens))
        if count > most:
            raise self.fault(f"has more merges than {most:,}, the most for its vocabulary")

    def count(self, key: str) -> int:
        """The length of a list, which is not read."""
        return self._packed(key).count

    def name(self, key: str, default: str) -> str:
        value = self._values.get(TOKENIZER_PREFIX + key, default)
        if not isinstance(value, str):
            raise self.fault(f"has a {TOKENIZER_PREFIX}{key} that is no name")
        return value

    def flag(self, key: str, default: bool | None) -> bool | None:
        value = self._values.get(TOKENIZER_PREFIX + key, default)
        if value is not default and not isinstance(value, bool):
            raise self.fault(f"has a {TOKENIZER_PREFIX}{key} that is neither true nor false")
        return value

    def role(self, role: str, default: int | None = None) -> int | None:
        """The ID of the token of a role; None where the vocabulary lacks it."""
        number = self._values.get(f"{TOKENIZER_PREFIX}{ROLE_KEYS[role]}_token_id", default)
        return number if type(number) is int and 0 <= number < len(self.tokens) else None

    def template(self) -> str | None:
        """The chat template as it is written."""
        value = self._values.get(TEMPLATE)
        return value if isinstance(value, str) else None

    def texts(self, key: str) -> list[str]:
        """A list of texts; empty where there is none."""
        items = self._items(key)
        try:
            return [text.decode("utf-8") for text in items]
        except (AttributeError, UnicodeDecodeError):
            raise self.fault(f"has {TOKENIZER_PREFIX}{key} that are not texts") from None

    def numbers(self, key: str) -> tuple[Any, ...]:
        """A list of numbers; empty where there is none."""
        items = self._items(key)
        if items and isinstance(items[0], bytes):
            raise self.fault(f"has {TOKENIZER_PREFIX}{key} that are not numbers")
        return items

    def bytes(self, key: str) -> bytes:
        """A list of small numbers as they are stored; empty where there is none."""
        packed = self._packed(key)
        if len(packed.content) != packed.count:
            raise self.fault(f"has {TOKENIZER_PREFIX}{key} that are not bytes")
        return packed.content

    def fault(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self._what} {what}.")

    def _items(self, key: str) -> tuple[Any, ...]:
        packed = self._packed(key)
        if len(packed.content) > LARGEST_LIST:
            raise self.fault(f"has {TOKENIZER_PREFIX}{key} of more than {LARGEST_LIST >> 20} MB")
        return packed.items()

    def _packed(self, key: str) -> PackedList:
        packed = self._values.get(TOKENIZER_PREFIX + key, PackedList(0, 0, b""))
        if not isinstance(packed, PackedList):
            raise self.fault(f"has {TOKENIZER_PREFIX}{key} that are no list")
        return packed
