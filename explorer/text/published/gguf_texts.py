"""The tokenizer in a GGUF file: its texts as the files that any other folder has on the disk.

They are made by `models.loading`, which bounds what it reads, and handed to the child as
files without a name.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from explorer.text.checked_text import TextError


def gguf_in(folder: Path) -> Path | None:
    """The GGUF file that a path is or whose folder it is; None where there is no such file."""
    from models.loading.gguf_header import gguf_file  # the child does without torch
    from models.loading.safe_files import CheckpointError

    try:
        return gguf_file(folder)
    except CheckpointError as error:
        raise TextError(str(error)) from error


def texts_of(file: Path) -> dict[str, str]:
    """The texts by the names of their files. TextError when there are none or one is not known."""
    from models.loading.safe_files import CheckpointError
    from models.loading.tokenizer_texts import gguf_texts

    try:
        made = gguf_texts(file)
    except CheckpointError as error:
        raise TextError(str(error)) from error
    if not made:
        raise TextError(f"{file.name[:60]} has no tokenizer.")
    return made


def stamps_of(file: Path, texts: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    """When the file changed, and how long each text is."""
    try:
        changed = file.stat().st_mtime_ns
    except OSError as error:
        raise TextError(f"{file.name[:60]} cannot be opened.") from error
    return tuple((changed, len(text.encode())) for text in texts.values())


def held(text: str) -> int:
    """The descriptor of a file that holds the text and goes when it is closed."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        return os.dup(file.fileno())
