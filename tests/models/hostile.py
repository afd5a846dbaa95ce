"""Words and files of strangers: what they hold, taken apart and put together again."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from tests.models.opening import Damage

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
Header = dict[str, Any]

UGLY = "a\n\x1b[2J\u202e\ud800" + "x" * 100_000
"""A name that would break a line, clear a terminal, turn the reading around and fill a page."""


def packed(header: bytes, numbers: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + numbers


def unpacked(content: bytes) -> tuple[Header, bytes]:
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def sharded(change: Callable[[Path, dict[str, str]], object] = lambda *_: None) -> Damage:
    """The weights in two files and an index; `change` may move files and edit the index."""

    def damage(folder: Path) -> None:
        values = load_file(folder / WEIGHTS)
        (folder / WEIGHTS).unlink()
        places: dict[str, str] = {}
        for i in (1, 2):
            half = sorted(values)[i - 1 :: 2]
            save_file({name: values[name] for name in half}, folder / shard(i))
            places |= dict.fromkeys(half, shard(i))
        change(folder, places)
        (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))

    return damage


def shard(i: int) -> str:
    return f"model-0000{i}-of-00002.safetensors"
