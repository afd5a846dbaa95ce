"""The files of a tokenizer: the app finds and opens them, the child process reads them."""

import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.text.checked_text import TextError


@contextmanager
def _as_text_error() -> Iterator[None]:
    """Faults of a folder are raised as TextError."""
    from models.loading.safe_files import CheckpointError  # the child does without torch

    try:
        yield
    except CheckpointError as error:
        raise TextError(str(error)) from error


def texts_of(file: Path) -> dict[str, str]:
    """The texts by the names of their files. TextError where there are none or one is unknown."""
    from models.loading.checkpoint_tokenizer import gguf_texts

    with _as_text_error():
        texts = gguf_texts(file)
    if not texts:
        raise TextError(f"{file.name[:60]} has no tokenizer.")
    return texts


def stamps_of(file: Path, texts: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    """The time of the last change and the length of each text."""
    try:
        changed = file.stat().st_mtime_ns
    except OSError as error:
        raise TextError(f"{file.name[:60]} cannot be opened.") from error
    return tuple((changed, len(text.encode())) for text in texts.values())


def descriptor_of(text: str) -> int:
    """The descriptor of a temporary file with this text; closing it deletes the file."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        return os.dup(file.fileno())


MEGABYTE = 1_000_000
FORMS: tuple[tuple[str, ...], ...] = (
    ("tokenizer.json",),
    ("vocab.txt",),
    ("vocab.json", "merges.txt"),
    ("source.spm", "target.spm", "vocab.json"),
    ("sentencepiece.bpe.model",),
    ("spiece.model",),
    ("tokenizer.model",),
)
"""The files of each form, in the order in which the forms are looked for."""

LARGEST = {
    "tokenizer.json": 60 * MEGABYTE,
    "tokenizer_config.json": 8 * MEGABYTE,
    "special_tokens_map.json": MEGABYTE,
    "added_tokens.json": 8 * MEGABYTE,
}
LARGEST_OTHER = 20 * MEGABYTE
BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
BESIDE_MARIAN = "target_vocab.json"


WORK_OF_PIECES = 12
"""A sentencepiece model says in a byte what a tokenizer.json says in several, merges left out."""


def work_of(sizes: Iterable[tuple[str, int]]) -> int:
    """The work of reading files of these names and sizes, as the bytes of a tokenizer.json."""
    most = LARGEST["tokenizer.json"]
    return sum(
        min(size * WORK_OF_PIECES, most) if name.endswith(".model") else size
        for name, size in sizes
    )


@dataclass(frozen=True)
class TokenizerFiles:
    """The files of one tokenizer; `stamp` changes when one of them does.

    For a tokenizer in a GGUF file, `folder` and `form` name that file.
    """

    folder: Path
    family: str
    form: tuple[str, ...]
    files: tuple[str, ...]
    stamp: tuple[tuple[int, int], ...]

    @property
    def work(self) -> int:
        return work_of(zip(self.files, (size for _, size in self.stamp), strict=True))


@dataclass(frozen=True)
class TokenizerText(TokenizerFiles):
    """A tokenizer.json and its tokenizer_config.json as texts, not files."""

    texts: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, text: str, settings: str) -> "TokenizerText":
        texts = (("tokenizer.json", text), ("tokenizer_config.json", settings))
        names = tuple(name for name, _ in texts)
        stamp = tuple((0, len(content.encode())) for _, content in texts)
        return cls(Path(), "", names[:1], names, stamp, texts)


def find_tokenizer(folder: Path, family: str) -> TokenizerFiles:
    """The tokenizer of the folder, in the first complete form; TextError if there is none."""
    from models.loading.gguf_header import gguf_file

    with _as_text_error():
        file = gguf_file(folder)
    if file is not None:
        texts = texts_of(file)
        stamps = stamps_of(file, texts)
        for name, (_, size) in zip(texts, stamps, strict=True):
            _check_size(name, size)
        return TokenizerFiles(file, family, (file.name,), tuple(texts), stamps)
    for form in FORMS:
        if all(os.path.lexists(folder / name) for name in form):
            extra = [*BESIDE, BESIDE_MARIAN] if "source.spm" in form else BESIDE
            files = (*form, *[name for name in extra if os.path.lexists(folder / name)])
            stamps = tuple(_stamp_of(folder, name) for name in files)
            return TokenizerFiles(folder, family, form, files, stamps)
    raise TextError(
        "The folder has no tokenizer that can be opened here: it needs tokenizer.json, vocab.txt, "
        "vocab.json with merges.txt, or a sentencepiece model."
    )


@contextmanager
def open_files(source: TokenizerFiles) -> Iterator[Mapping[str, int]]:
    """A file descriptor for each file; TextError if one changed since it was found."""
    descriptors: dict[str, int] = {}
    try:
        if isinstance(source, TokenizerText):
            descriptors |= {name: descriptor_of(text) for name, text in source.texts}
            stamp = source.stamp
        elif source.form == (source.folder.name,):
            texts = texts_of(source.folder)
            descriptors |= {name: descriptor_of(text) for name, text in texts.items()}
            stamp = stamps_of(source.folder, texts)
        else:
            for name in source.files:
                descriptors[name] = _open_file(inside(source.folder, name))
            stamp = tuple(_stamp(os.fstat(number), name) for name, number in descriptors.items())
        if stamp != source.stamp:
            raise TextError("The tokenizer's files changed on the disk; open the model again.")
        yield descriptors
    finally:
        for number in descriptors.values():
            with suppress(OSError):
                os.close(number)


def inside(folder: Path, name: str) -> Path:
    """The real path of a file. TextError when it is outside the folder of its model."""
    from models.loading.safe_files import regular_file

    with _as_text_error():
        return regular_file(folder, name)


def _stamp_of(folder: Path, name: str) -> tuple[int, int]:
    try:
        return _stamp(os.stat(inside(folder, name)), name)
    except OSError as error:
        raise TextError(f"The file {name} of the tokenizer cannot be opened.") from error


def _stamp(status: os.stat_result, name: str) -> tuple[int, int]:
    """The time of the last change and the size. TextError unless it is a file of bounded size."""
    if not stat.S_ISREG(status.st_mode):
        raise TextError(f"{name} of the tokenizer is not a file.")
    _check_size(name, status.st_size)
    return (status.st_mtime_ns, status.st_size)


def _check_size(name: str, size: int) -> None:
    most = LARGEST.get(name, LARGEST_OTHER)
    if size > most:
        raise TextError(
            f"The tokenizer's {name} has {size / MEGABYTE:,.0f} MB; "
            f"at most {most // MEGABYTE} MB are read."
        )


def _open_file(path: Path) -> int:
    """Open without waiting: a named pipe in place of a file would block the app forever."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise TextError(f"The file {path.name} of the tokenizer cannot be opened.") from error


Files = Mapping[str, int]


def file_bytes(files: Files, name: str) -> bytes:
    """The whole file; its size was bounded when it was opened."""
    descriptor = files[name]
    left, parts = os.fstat(descriptor).st_size, []
    os.lseek(descriptor, 0, os.SEEK_SET)
    while left > 0 and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def parsed_piece_model(files: Files, name: str, parse: Callable[[bytes], Any]) -> Any:
    """What `parse` makes of a sentencepiece model; TextError where it is none."""
    content = file_bytes(files, name)
    if content[:1] == b"\x80":
        raise TextError(f"{name} is a pickle, which could run code; it is not read.")
    try:
        return parse(content)
    except Exception as error:
        raise TextError(f"{name} is not a sentencepiece model.") from error


def file_text(files: Files, name: str) -> str:
    try:
        return file_bytes(files, name).decode("utf-8")
    except UnicodeDecodeError:
        raise TextError(f"{name} is not text.") from None


def json_object(files: Files, name: str) -> dict[str, Any]:
    """A file that holds one JSON object; empty where there is no such file."""
    if name not in files:
        return {}
    try:
        content = json.loads(file_bytes(files, name), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise TextError(f"{name} is not readable JSON.") from None
    if not isinstance(content, dict):
        raise TextError(f"{name} is not a JSON object.")
    return content


def file_lines(files: Files, name: str) -> list[str]:
    """The lines of a file. Only a line feed ends a line: a token may be any other character."""
    lines = file_text(files, name).split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _refuse(constant: str) -> None:
    raise ValueError(constant)
