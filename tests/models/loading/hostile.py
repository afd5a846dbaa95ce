"""A small GPT-2 folder, and the bytes of its files, to be damaged."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
Damage = Callable[[Path], object]
Cases = dict[str, tuple[Damage, str]]
"""What is done to a good folder, and words of the sentence that says so."""
Header = dict[str, Any]

UGLY = "a\n\x1b[2J\u202e\ud800" + "x" * 100_000
"""A name that would break a line, clear a terminal, turn the reading around and fill a page."""
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 5\n"
PAGE = "\n<!DOCTYPE html><html><body>Sign in</body></html>"


def packed(header: bytes, numbers: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + numbers


def unpacked(content: bytes) -> tuple[Header, bytes]:
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def shard(i: int) -> str:
    return f"model-0000{i}-of-00002.safetensors"


def sharded(change: Callable[[Path, dict[str, Any]], object] = lambda *_: None) -> Damage:
    """The weights in two files and an index; `change` may move files and edit the index."""

    def damage(folder: Path) -> None:
        values = load_file(folder / WEIGHTS)
        (folder / WEIGHTS).unlink()
        names = sorted(values)
        places: dict[str, Any] = {}
        for i, half in enumerate((names[::2], names[1::2]), 1):
            save_file({name: values[name] for name in half}, folder / shard(i))
            places |= dict.fromkeys(half, shard(i))
        change(folder, places)
        (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))

    return damage
