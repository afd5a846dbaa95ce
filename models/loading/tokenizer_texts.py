"""The texts of the tokenizer that comes with a checkpoint, from its files or out of a GGUF file."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from models.loading.gguf_header import GgufHeader, gguf_file, read_gguf_header
from models.loading.gguf_tokenizer import tokenizer_files
from models.loading.gguf_vocabulary import KIND
from models.loading.safe_files import (
    TOKENIZER,
    TOKENIZER_CONFIG,
    is_there,
    parse_object,
    read_text,
    title,
)

CHAT_TEMPLATE = "chat_template.jinja"


def tokenizer_text(place: Path, name: str = TOKENIZER) -> str | None:
    """The text of tokenizer.json or another file of a checkpoint; None where there is none.

    CheckpointError says why it cannot be read. Out of a GGUF file there are tokenizer.json
    and tokenizer_config.json.
    """
    if (file := gguf_file(place)) is not None:
        return gguf_texts(file).get(name)
    return read_text(place, name) if is_there(place, name) else None


def gguf_has_tokenizer(file: Path) -> bool:
    """Whether a GGUF file holds one, be it known here or not."""
    return KIND in read_gguf_header(file).values


def gguf_texts(file: Path) -> dict[str, str]:
    """tokenizer.json and tokenizer_config.json, made of the metadata of a GGUF file.

    CheckpointError names what is not known. Time grows with the vocabulary, 0.3 s for 50,000
    tokens, and the last ones are kept.
    """
    return dict(_of_header(read_gguf_header(file)))


@lru_cache(maxsize=1)
def _of_header(header: GgufHeader) -> dict[str, str]:
    return tokenizer_files(header)


def chat_template(place: Path) -> str | None:
    """The text of the Jinja template that makes a prompt of messages; None where there is none.

    Nothing is rendered here: a template is a stranger's program. CheckpointError when a file
    is damaged. Of several templates it is the one named default.
    """
    if (text := tokenizer_text(place, CHAT_TEMPLATE)) is not None:
        return text
    text = tokenizer_text(place, TOKENIZER_CONFIG)
    found = parse_object(text, f"{TOKENIZER_CONFIG} in {title(place)}") if text else {}
    template: Any = found.get("chat_template")
    if isinstance(template, list):
        named = [one for one in template if isinstance(one, dict)]
        template = next((one.get("template") for one in named if one.get("name") == "default"), "")
    return template if isinstance(template, str) and template else None
