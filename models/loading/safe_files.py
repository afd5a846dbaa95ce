"""Small files of a folder that is not trusted: bounded, regular, inside it, and strict JSON.

Every fault is a CheckpointError in one sentence, which names the folder but not its path and
quotes a stranger's words only through `quoted`.
"""

import os
import stat
from pathlib import Path
from typing import Any, NoReturn

from models.file_text import parse_json

CONFIG, RUN, STATE, TOKENIZER = "config.json", "run.json", "state.json", "tokenizer.json"
INDEX, GENERATION = "model.safetensors.index.json", "generation_config.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
ADAPTER_CONFIG = "adapter_config.json"
LARGEST_FILE = {TOKENIZER: 32 << 20, TOKENIZER_CONFIG: 8 << 20, INDEX: 4 << 20}
"""The most bytes of a file that are read, where that is not LARGEST_TEXT."""
LARGEST_TEXT = 1 << 20
DEEPEST_JSON = 32
"""Lists and objects inside one another. Published configs need five."""
MOST_JSON_VALUES = 400_000
"""Values of one JSON text, counted before it is parsed: empty lists take 20 times their text."""
LONGEST_NUMBER = 100
"""Digits of a whole number; with 309 no float can hold it."""
MOST_SHOWN = 60


class CheckpointError(ValueError):
    """Why a folder cannot be opened, in one sentence."""


def quoted(name: object, most: int = MOST_SHOWN) -> str:
    """A stranger's word as it may stand in a sentence: one line, printable, cut.

    In quotation marks where its end could not be seen or would be taken for the sentence's.
    """
    text = name if isinstance(name, str) else repr(name)
    plain = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text[: most + 1]
    )
    cut = plain if len(plain) <= most else plain[: most - 1] + "…"
    return cut if cut and cut == cut.strip() and cut[-1] != "." else f'"{cut}"'


def title(folder: Path) -> str:
    """The folder's own name, without its path, for a sentence."""
    return quoted(folder.name or folder.absolute().name)


def is_folder(folder: Path) -> bool:
    """Whether it is a folder that can be read; False for a name that is too long."""
    try:
        return folder.is_dir()
    except OSError:
        return False


def is_there(folder: Path, name: str) -> bool:
    """Whether the folder has an entry of this name, including a broken link."""
    return os.path.lexists(folder / name)


def regular_file(folder: Path, name: str) -> Path:
    """The real path of the file. CheckpointError unless it is a plain file of this folder.

    A link may lead elsewhere in the folder. In the cache of a hub it leads from
    `snapshots/<revision>` to `blobs` beside it, which belongs to the same model. Pipes and
    devices are not opened: that alone can block for ever.
    """
    try:
        home = Path(os.path.realpath(folder))
        path = Path(os.path.realpath(folder / name))
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{title(folder)} has no readable {quoted(name)}.") from error
    rooms = [home]
    if home.parent.name == "snapshots":
        rooms.append(home.parent.parent / "blobs")
    if not any(path.is_relative_to(room) for room in rooms):
        raise CheckpointError(
            f"{quoted(name)} in {title(folder)} is a link out of the folder, which is not followed."
        )
    if not stat.S_ISREG(mode):
        raise CheckpointError(f"{title(folder)} has no readable {quoted(name)}.")
    return path


def read_bytes(folder: Path, name: str, most: int | None = None) -> bytes:
    """A file of the folder, of at most `most` bytes, by default what its name allows."""
    path = regular_file(folder, name)
    most = LARGEST_FILE.get(name, LARGEST_TEXT) if most is None else most
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise CheckpointError(f"{title(folder)} has no readable {quoted(name)}.") from error
    if len(content) > most:
        raise CheckpointError(f"{quoted(name)} in {title(folder)} is too large to be one.")
    return content


def read_text(folder: Path, name: str, most: int | None = None) -> str:
    """A text file of the folder, no larger than its kind may be."""
    content = read_bytes(folder, name, most)
    if content.startswith(POINTER):
        raise CheckpointError(pointer_fault(folder, name))
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{quoted(name)} in {title(folder)} is not text.") from error


def read_json(folder: Path, name: str, most: int | None = None) -> dict[str, Any]:
    """The object in a JSON file of the folder."""
    text, what = read_text(folder, name, most), f"{quoted(name)} in {title(folder)}"
    return parse_object(text, what, exact=name == INDEX)  # which names tensors and files


POINTER = b"version https://git-lfs"
"""The start of a file that stands in git for a large one."""


def pointer_fault(folder: Path, name: str) -> str:
    return (
        f"{quoted(name)} in {title(folder)} is a git-lfs pointer in place of the file; "
        "fetch the file with git lfs pull."
    )


def parse_object(text: str, what: str, *, exact: bool = False) -> dict[str, Any]:
    """The JSON object in a text that is not trusted; `what` names it in the sentence.

    `exact` is that of `parse_json`.
    """
    if sum(map(text.count, "[{,")) > MOST_JSON_VALUES:
        raise CheckpointError(f"{what} holds too many values to be one.")
    try:
        values = parse_json(
            text,
            exact=exact,
            object_pairs_hook=_object,
            parse_int=_whole,
            parse_float=_fraction,
            parse_constant=_no_number,
        )
    except RecursionError as error:
        raise CheckpointError(f"{what} is nested too deep.") from error
    except _Fault as error:
        raise CheckpointError(f"{what} is not readable JSON: it {error}.") from error
    except ValueError as error:
        raise CheckpointError(f"{what} is not readable JSON.") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{what} must be a JSON object.")
    if _is_deeper(values, DEEPEST_JSON):
        raise CheckpointError(f"{what} is nested too deep.")
    return values


class _Fault(ValueError):
    """A value that strict JSON does not allow here."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise _Fault("names a key twice")
    return values


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise _Fault("holds a number of too many digits")
    return int(digits)


def _fraction(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise _Fault("holds a number that is too large")
    return value


def _no_number(word: str) -> NoReturn:
    raise _Fault(f"holds {word}, which is no number")


def _is_deeper(values: object, most: int) -> bool:
    """Whether more than `most` lists and objects lie inside one another."""
    level = [values]
    for _ in range(most):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)  # type: ignore[attr-defined]
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
