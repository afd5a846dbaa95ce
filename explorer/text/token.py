"""The data of tokenization, and the interface of every tokenizer."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

PAD, BOS, EOS, UNKNOWN, CLS = "<pad>", "<s>", "</s>", "<unk>", "<cls>"

Reads = tuple[str, ...]

DECODER: Reads = (BOS, "$A")
SOURCE: Reads = ("$A", EOS)
CLASSIFIER: Reads = (CLS, "$A")
ALONE: Reads = ("$A",)

SPECIALS: dict[Reads, tuple[str, ...]] = {
    DECODER: (PAD, BOS),
    SOURCE: (PAD, BOS, EOS),
    CLASSIFIER: (PAD, CLS),
    ALONE: (PAD,),
}
"""Which special tokens open the vocabulary; `<unk>` follows where a token can be unknown."""


@dataclass(frozen=True)
class Token:
    """One token: its ID, its label, and the characters it came from.

    It stands for `text[start:end]`, in the second text of a pair where `second` is true. Several
    tokens share a span when one character needs several bytes; a special token has an empty span.
    A family with segments (BERT) reads `segment` with the token. `text` has the characters of one
    that replaces another of the text.
    """

    id: int
    label: str
    start: int = 0
    end: int = 0
    special: bool = False
    segment: int = 0
    second: bool = False
    text: str = ""


class AnyTokenizer(ABC):
    """Text to tokens and back, in the way one model reads it.

    `Tokenizer` is that of models made here, in this process, and `PublishedTokenizer` that of most
    others, in a process of its own. `kind` says what a token is: "characters", "words", "bytes",
    "wordpiece" or "sentencepiece"; `lowercase`, whether the text is lowercased.
    """

    kind: str
    vocab_size: int
    """One more than the largest token ID."""
    lowercase: bool
    pad_id: int | None
    bos_id: int | None
    eos_id: int | None
    unk_id: int | None
    cls_id: int | None
    sep_id: int | None
    mask_id: int | None
    special_ids: frozenset[int]

    @abstractmethod
    def id_of(self, entry: str) -> int:
        """The ID of an entry of the vocabulary; TextError if it is not there."""

    @abstractmethod
    def encode(self, text: str, pair: str | None = None) -> tuple[Token, ...]:
        """The tokens the model reads for this text, special tokens included."""

    def ids(self, text: str, pair: str | None = None) -> list[int]:
        return [token.id for token in self.encode(text, pair)]

    @abstractmethod
    def decode(self, ids: list[int]) -> str:
        """The text of these tokens; special tokens are left out, an unknown one is shown."""

    @abstractmethod
    def label(self, token_id: int) -> str:
        """How to show a token."""

    def token(self, token_id: int) -> Token:
        """A token that was not typed, such as one a model wrote; it has no span."""
        return Token(token_id, self.label(token_id), special=token_id in self.special_ids)


TYPED = "The text as it was typed."
ADD_SPECIAL_TOKENS = "Add the special tokens that the model reads around the text."


@dataclass(frozen=True)
class Piece:
    """A part of the text: `text[start:end]`, its label, and its token ID once it has one.

    `changed` marks the pieces that the step has just made.
    """

    label: str
    start: int
    end: int
    id: int | None = None
    special: bool = False
    changed: bool = False


@dataclass(frozen=True)
class TokenizerStep:
    """The text after one step, and what the step did; `rank` is the rank of a merge."""

    action: str
    pieces: tuple[Piece, ...]
    rank: int | None = None
