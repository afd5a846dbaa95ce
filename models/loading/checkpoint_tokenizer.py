"""The tokenizer that comes with a checkpoint, from its files or out of a GGUF file."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxtyping import Int
from torch import Tensor

from models.file_text import parse_json
from models.loading.gguf_header import GgufHeader, gguf_file, read_gguf_header
from models.loading.gguf_tokenizer import tokenizer_files
from models.loading.gguf_vocabulary import KIND, NO_KIND
from models.loading.safe_files import (
    TOKENIZER,
    TOKENIZER_CONFIG,
    CheckpointError,
    is_there,
    parse_object,
    read_text,
    title,
)
from models.loading.weight_files import model_folder

if TYPE_CHECKING:
    import tokenizers

TOKENIZER_FILES = (
    TOKENIZER,
    "vocab.txt",
    "source.spm",
    "vocab.json",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
)
"""A folder with any of these has a tokenizer."""
CHAT_TEMPLATE = "chat_template.jinja"
MASKS = ("[MASK]", "<mask>")
TokenIds = Sequence[int] | Int[Tensor, " t"]


class CheckpointTokenizer:
    """Text to token IDs and back, as the model of a checkpoint reads it.

    `text` is its tokenizer.json, or None where the folder has a tokenizer of another form, which
    CheckpointError names at the first use. Then the `tokenizers` library opens the text, in this
    process and trusting it: a file made to do harm can end the process.
    """

    def __init__(self, place: Path, text: str | None) -> None:
        self.place, self.text = place, text

    def encode(self, text: str) -> list[int]:
        """The token IDs that the model reads, special tokens around the text included.

        A special token that is typed is plain text, except the mask. Time grows with the text.
        """
        library, _ = self._opened
        ids: list[int] = library.encode(text).ids
        return ids

    def decode(self, ids: TokenIds) -> str:
        """The text of these tokens, without special ones; an unknown one is shown."""
        library, special = self._opened
        ordinary = [token for token in map(int, ids) if token not in special]
        return str(library.decode(ordinary, skip_special_tokens=False))

    def tokens(self, text: str | TokenIds) -> list[str]:
        """Every token of a text, or of these IDs, as the vocabulary writes it.

        A space is `Ġ` in byte-level BPE and `▁` in sentencepiece; `<50300>` is an ID that the
        vocabulary does not have.
        """
        library, special = self._opened
        ids = self.encode(text) if isinstance(text, str) else map(int, text)
        return [special.get(i) or library.id_to_token(i) or f"<{i}>" for i in ids]

    @cached_property
    def _opened(self) -> "tuple[tokenizers.Tokenizer, dict[int, str]]":
        """The library's tokenizer, and its special tokens by ID."""
        if self.text is None:
            file = next(name for name in TOKENIZER_FILES if is_there(self.place, name))
            raise CheckpointError(
                f"{title(self.place)} has no {TOKENIZER} but {file}, which the app reads and "
                f"`models` does not; transformers writes a {TOKENIZER} of most."
            )
        settings = tokenizer_settings(self.place)
        try:
            return open_library(parse_json(self.text, exact=True), settings)
        except Exception as error:
            what = f"{TOKENIZER} in {title(self.place)}"
            raise CheckpointError(f"{what} does not describe a tokenizer.") from error


def open_library(
    stored: dict[str, Any], settings: Mapping[str, Any]
) -> "tuple[tokenizers.Tokenizer, dict[int, str]]":
    """The tokenizer of a tokenizer.json, without padding, truncation and dropout."""
    import tokenizers  # slow, and needed for texts alone

    model, added = stored["model"], stored.get("added_tokens") or []
    vocabulary = model["vocab"]
    stored["padding"] = stored["truncation"] = None
    if "dropout" in model:
        model["dropout"] = None
    is_unigram = isinstance(vocabulary, list)
    unknown = vocabulary[model.get("unk_id") or 0][0] if is_unigram else model.get("unk_token")
    masks = {*MASKS, special_token(settings, "mask")}
    for token in added:
        token["special"] = bool(token.get("special")) and token["content"] not in masks
    special = {t["id"]: t["content"] for t in added if t["special"] and t["content"] != unknown}
    if is_unigram:  # Unigram finds a typed special token like any other piece
        for i, piece in enumerate(vocabulary):
            if special.get(i) == piece[0]:
                piece[0] = f"\U0010ffff{i}"
        stored["added_tokens"] = [t for t in added if vocabulary[t["id"]][0] == t["content"]]
    special |= {t["id"]: t["content"] for t in added if t["content"] in masks}
    library = tokenizers.Tokenizer.from_str(json.dumps(stored))
    library.encode_special_tokens = True
    return library, special


def special_token(settings: Mapping[str, Any], role: str) -> Any:
    """The text of the token of a role; files write it plain, or with its options."""
    token = settings.get(f"{role}_token")
    return token.get("content") if isinstance(token, dict) else token


def tokenizer_of_folder(place: Path) -> CheckpointTokenizer | None:
    """The tokenizer of a checkpoint; None where there is none.

    CheckpointError says why its tokenizer.json cannot be read.
    """
    text, place = tokenizer_text(place), tokenizer_place(place)
    return CheckpointTokenizer(place, text) if text is not None or has_tokenizer(place) else None


def has_tokenizer(place: Path) -> bool:
    """Whether a folder or GGUF file has a tokenizer, supported or not."""
    if (file := gguf_file(place)) is not None:
        return read_gguf_header(file).values.get(KIND, NO_KIND[0]) not in NO_KIND
    return _has_files(tokenizer_place(place))


def tokenizer_place(place: Path) -> Path:
    """Where the tokenizer of a checkpoint is: of an adapter alone, in it or else in its model."""
    return place if _has_files(place) else model_folder(place)


def _has_files(place: Path) -> bool:
    return any((place / name).is_file() for name in TOKENIZER_FILES)


def tokenizer_text(place: Path, name: str = TOKENIZER) -> str | None:
    """The text of tokenizer.json or another file of a checkpoint; None where there is none.

    CheckpointError says why it cannot be read. Out of a GGUF file there are tokenizer.json
    and tokenizer_config.json.
    """
    if (file := gguf_file(place)) is not None:
        return gguf_texts(file).get(name)
    place = place if is_there(place, name) else tokenizer_place(place)
    return read_text(place, name) if is_there(place, name) else None


def tokenizer_settings(place: Path) -> dict[str, Any]:
    """The values of tokenizer_config.json; empty where there is none."""
    text = tokenizer_text(place, TOKENIZER_CONFIG)
    what = f"{TOKENIZER_CONFIG} in {title(place)}"
    return parse_object(text, what, exact=True) if text else {}


def gguf_texts(file: Path) -> dict[str, str]:
    """tokenizer.json and tokenizer_config.json, from the metadata of a GGUF file.

    CheckpointError names what is not supported. Time grows with the vocabulary, 0.3 s for 50,000
    tokens, and the last ones are kept.
    """
    return dict(_of_header(read_gguf_header(file)))


@lru_cache(maxsize=1)
def _of_header(header: GgufHeader) -> dict[str, str]:
    return tokenizer_files(header)


def chat_template(place: Path) -> str | None:
    """The text of the Jinja template that makes a prompt of messages; None where there is none.

    Nothing is rendered here: a template is a stranger's program. CheckpointError when a file
    is damaged. Of several templates, the one named default counts.
    """
    if (text := tokenizer_text(place, CHAT_TEMPLATE)) is not None:
        return text
    template: Any = tokenizer_settings(place).get("chat_template")
    if isinstance(template, list):
        named = [entry for entry in template if isinstance(entry, dict)]
        template = next((t.get("template") for t in named if t.get("name") == "default"), "")
    return template if isinstance(template, str) and template else None
