"""Our three kinds of tokenizer, by the `tokenizers` library, with readable labels.

The library does the work; this module adds a label and a span in the typed text for every
token, limits, and the guarantee that typed text never becomes a special token.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import chain
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Library
from tokenizers.processors import TemplateProcessing

from explorer.system import limits
from explorer.system.cooperative import interruptible
from explorer.text.checked_text import TextError, checked
from explorer.text.library_training import BPE, learned_merges
from explorer.text.token import (
    BOS,
    CLS,
    DECODER,
    EOS,
    PAD,
    SPECIALS,
    UNKNOWN,
    AnyTokenizer,
    Reads,
    Token,
)
from explorer.text.visible_text import byte_alphabet, bytes_of, readable, readable_bytes

MAX_FILE_CHARACTERS = 20_000_000
CORPUS_PART = re.compile(r"[\s\S]{1,200000}\s*\S{0,200000}")
"""Letters that are read within a second: the rest of the last word, up to a bound, is with them."""

_NORMALIZERS: list[Any] = [None, {"type": "Lowercase"}]
_CHARACTERS: dict[str, Any] = {
    "type": "Split",
    "pattern": {"Regex": r"[\s\S]"},
    "behavior": "Isolated",
    "invert": False,
}
_BYTES: dict[str, Any] = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": False,
    "use_regex": True,
}
_BPE_OPTIONS = {
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": False,
}
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")
_PARTS: dict[str, list[tuple[Any, Any]]] = {
    "WordLevel": [(_CHARACTERS, {"type": "Fuse"}), ({"type": "Whitespace"}, None)],
    "BPE": [(_BYTES, {"type": "ByteLevel"})],
}


def check_stored(text: str) -> None:
    """TextError, in one sentence, unless the file describes a tokenizer of this app."""
    if len(text) > MAX_FILE_CHARACTERS:
        raise TextError(f"The tokenizer file is larger than {MAX_FILE_CHARACTERS:,} characters.")
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TextError("The tokenizer file is not readable JSON.") from error
    fault = _fault(stored)
    if fault:
        raise TextError(f"The tokenizer file cannot be used: {fault}.")


def _fault(stored: Any) -> str | None:
    if not isinstance(stored, dict) or not isinstance(stored.get("model"), dict):
        return "it has no model"
    for part in ("padding", "truncation"):
        if stored.get(part) is not None:
            return f"it asks for {part}, which the model does itself"
    if stored.get("normalizer") not in _NORMALIZERS:
        return "it changes the text in a way this app does not know"
    return (
        _kind_fault(stored)
        or _vocabulary_fault(stored["model"])
        or _special_fault(stored, stored["model"]["vocab"])
    )


def _kind_fault(stored: dict[str, Any]) -> str | None:
    model = stored["model"]
    forms = _PARTS.get(str(model.get("type")))
    if forms is None:
        return "only character, word and byte-level BPE tokenizers are known"
    if model["type"] == "BPE" and any(model.get(k) != v for k, v in _BPE_OPTIONS.items()):
        return "its BPE has options this app does not know"
    if not any(
        stored.get("pre_tokenizer") == splits
        and (stored.get("decoder") or {}).get("type") == (joins or {}).get("type")
        for splits, joins in forms
    ):
        return "it splits or joins text in a way this app does not know"
    return None


def _vocabulary_fault(model: dict[str, Any]) -> str | None:
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict) or not vocabulary:
        return "it has no vocabulary"
    ids = list(vocabulary.values())
    if not all(type(index) is int for index in ids) or sorted(ids) != list(range(len(ids))):
        return "its vocabulary does not number its tokens from 0 on"
    if model["type"] == "WordLevel":
        has_unknown = model.get("unk_token") == UNKNOWN and UNKNOWN in vocabulary
        return None if has_unknown else "it has no unknown token"
    if any(not set(token) <= byte_alphabet().keys() for token in vocabulary):
        return "a token is not made of bytes"
    merges = model.get("merges")
    if not isinstance(merges, list):
        return "it has no merges"
    for merge in merges:
        if not (
            isinstance(merge, list)
            and len(merge) == 2
            and all(isinstance(part, str) for part in merge)
        ):
            return "a merge is not a pair of tokens"
        if not {*merge, "".join(merge)} <= vocabulary.keys():
            return "a merge uses tokens outside the vocabulary"
    return None


def _special_fault(stored: dict[str, Any], vocabulary: dict[str, int]) -> str | None:
    """Special tokens must be ours, and placed in one of the three ways a model reads."""
    processor = stored.get("post_processor")
    if not isinstance(processor, dict) or processor.get("type") != "TemplateProcessing":
        return "it does not say which special tokens surround a text"
    reads = next((way for way in SPECIALS if template_of(way) == processor.get("single")), None)
    if reads is None:
        return "it surrounds a text in a way this app does not know"
    around = [name for name in reads if name != "$A"]
    if processor.get("special_tokens") != {
        name: {"id": name, "ids": [vocabulary.get(name)], "tokens": [name]} for name in around
    }:
        return "the special tokens around a text are not in the vocabulary"
    expected = [special_entry(name, vocabulary.get(name)) for name in SPECIALS[reads]]
    return None if stored.get("added_tokens") == expected else "its special tokens are unknown"


def template_of(reads: Reads) -> list[dict[str, Any]]:
    """The special tokens around a text in this order, as the library's file describes them."""
    return [
        {"Sequence": {"id": "A", "type_id": 0}}
        if name == "$A"
        else {"SpecialToken": {"id": name, "type_id": 0}}
        for name in reads
    ]


def special_entry(name: str, token_id: int | None) -> dict[str, Any]:
    """A special token as the library's file has it."""
    return {"id": token_id, "content": name, "special": True} | dict.fromkeys(_FLAGS, False)


class Tokenizer(AnyTokenizer):
    """The tokenizer of a model made here."""

    def __init__(self, library: tokenizers.Tokenizer) -> None:
        # Not part of the library's file format, so every constructor sets it.
        library.encode_special_tokens = True
        self.library = library
        self.reads_special = False
        self.special_ids = frozenset(library.get_added_tokens_decoder())
        self.kind = _kind_of(library)
        self.vocab_size = library.get_vocab_size()
        self.lowercase = library.normalizer is not None
        roles = (PAD, BOS, EOS, UNKNOWN, CLS)
        ids: list[int | None] = [library.token_to_id(name) for name in roles]
        self.pad_id, self.bos_id, self.eos_id, self.unk_id, self.cls_id = ids
        self.sep_id = self.mask_id = None  # no model made here reads pairs or fills masks
        self._labels: dict[int, str] = {}

    def id_of(self, entry: str) -> int:
        token_id = self.library.token_to_id(entry)
        if token_id is None:
            raise TextError(f"The vocabulary has no {entry[:40]!r}.")
        return int(token_id)

    def encode(self, text: str, pair: str | None = None) -> tuple[Token, ...]:
        _single(pair)
        encoding = self.library.encode(checked(text), add_special_tokens=not self.reads_special)
        tokens: list[Token] = []
        for token_id, span, special in zip(
            encoding.ids, encoding.offsets, encoding.special_tokens_mask, strict=True
        ):
            if self.reads_special:
                special = token_id in self.special_ids
            elif special:
                place = len(text) if token_id == self.eos_id else 0
                span = (place, place)
            tokens.append(Token(token_id, self.label(token_id), *span, special=bool(special)))
        return tuple(tokens)

    def reading_prompts(self) -> "Tokenizer":
        """The same tokenizer, but it reads special tokens that are written in a text.

        It adds none around the text.
        """
        tokenizer = copy(self)
        tokenizer.library = tokenizers.Tokenizer.from_str(self.library.to_str())
        tokenizer.reads_special = True
        return tokenizer

    def ids(self, text: str, pair: str | None = None) -> list[int]:
        _single(pair)
        return self.library.encode(checked(text), add_special_tokens=not self.reads_special).ids

    def corpus_ids(self, text: str) -> list[int]:
        """The IDs of a long text to train on, without special tokens."""
        corpus = checked(text, limits.CORPUS_CHARACTERS)
        encode = self.library.encode
        parts = (encode(part, add_special_tokens=False).ids for part in _parts(corpus))
        return [*chain.from_iterable(parts)]

    def many_ids(self, texts: Sequence[str], *, special: bool = True) -> list[list[int]]:
        """The IDs of each of many short texts, with the special tokens around them or without."""
        encode = self.library.encode
        return [
            encode(checked(text), add_special_tokens=special).ids for text in interruptible(texts)
        ]

    def decode(self, ids: list[int]) -> str:
        return self.library.decode([int(token_id) for token_id in ids], skip_special_tokens=True)

    def label(self, token_id: int) -> str:
        """How to show a token: spaces as ␣, line ends as ↵, part of a character as <0xE2>."""
        if token_id not in self._labels:
            self._labels[token_id] = self._make_label(token_id)
        return self._labels[token_id]

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


BYTES = 256
MOST_TRAINED_ENTRIES = 50_000


def character_tokenizer(
    alphabet: Iterable[str], reads: Reads = DECODER, *, lowercase: bool = False
) -> Tokenizer:
    """One token for each character; characters outside the alphabet become `<unk>`."""
    library = _look_up(sorted(set(alphabet)), reads, lowercase)
    library.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    library.decoder = decoders.Fuse()
    return Tokenizer(library)


def word_tokenizer(
    words: Iterable[str], reads: Reads = DECODER, *, lowercase: bool = False
) -> Tokenizer:
    """One token for each word or run of punctuation; unlisted words become `<unk>`."""
    library = _look_up(sorted(set(words)), reads, lowercase)
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    return Tokenizer(library)


def words_of(text: str) -> list[str]:
    """The words and runs of punctuation of a text, in order, as a word tokenizer splits them."""
    split = pre_tokenizers.Whitespace().pre_tokenize_str
    parts = _parts(checked(text, limits.CORPUS_CHARACTERS))
    return [word for part in parts for word, _ in split(part)]


def _parts(text: str) -> Iterator[str]:
    """A long text in parts, with a cooperative step before each.

    Each but the first begins with a space, or another white character, and the one before ends with
    none: no tokenizer of ours has a token across that place. A word of 200,000 letters may be cut.
    """
    return (part[0] for part in interruptible(CORPUS_PART.finditer(text)))


def byte_tokenizer(
    text: str, vocab_size: int, reads: Reads = DECODER, *, lowercase: bool = False
) -> Tokenizer:
    """Byte-level BPE with merges trained on `text`, at most `vocab_size` tokens.

    It reads any text: a word that was not in the training text is read byte by byte.
    """
    specials = SPECIALS[reads]
    if not BYTES + len(specials) <= vocab_size <= MOST_TRAINED_ENTRIES:
        raise TextError(
            f"A byte-level vocabulary has {BYTES + len(specials)} to {MOST_TRAINED_ENTRIES:,} "
            f"tokens, not {vocab_size:,}."
        )
    options = {
        "vocab_size": vocab_size,
        "special_tokens": list(specials),
        "initial_alphabet": sorted(pre_tokenizers.ByteLevel.alphabet()),
    }
    learned = learned_merges([checked(text, limits.CORPUS_CHARACTERS)], BPE, options, lowercase)
    merges = [(left, right) for left, right in learned["merges"]]
    library = Library(models.BPE(learned["vocab"], merges))
    library.normalizer = normalizers.Lowercase() if lowercase else None
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
    library.decoder = decoders.ByteLevel()
    return Tokenizer(_add_special_tokens(library, reads))


def _look_up(entries: Sequence[str], reads: Reads, lowercase: bool) -> Library:
    names = [*SPECIALS[reads], UNKNOWN]
    names += [entry for entry in entries if entry not in names]
    if len(names) > MOST_TRAINED_ENTRIES:
        raise TextError(f"A vocabulary has at most {MOST_TRAINED_ENTRIES:,} tokens.")
    vocabulary = {name: index for index, name in enumerate(names)}
    library = Library(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    library.normalizer = normalizers.Lowercase() if lowercase else None
    return _add_special_tokens(library, reads)


def _add_special_tokens(library: Library, reads: Reads) -> Library:
    """Add the special tokens, and where they go around a text."""
    library.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS[reads]])
    around = [(name, library.token_to_id(name)) for name in reads if name != "$A"]
    library.post_processor = TemplateProcessing(single=list(reads), special_tokens=around)
    return library
