"""Reads the child's files: bounded bytes, then JSON or lines, each fault in half a sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from explorer.text.limits import TextError

Files = Mapping[str, int]


def bytes_of(files: Files, name: str) -> bytes:
    """The whole file; its size was bounded when it was opened."""
    descriptor = files[name]
    left, parts = os.fstat(descriptor).st_size, []
    os.lseek(descriptor, 0, os.SEEK_SET)
    while left > 0 and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def text_of(files: Files, name: str) -> str:
    try:
        return bytes_of(files, name).decode("utf-8")
    except UnicodeDecodeError:
        raise TextError(f"{name} is not text.") from None


def object_of(files: Files, name: str) -> dict[str, Any]:
    """A file that holds one JSON object; empty where there is no such file."""
    if name not in files:
        return {}
    try:
        found = json.loads(bytes_of(files, name), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise TextError(f"{name} is not readable JSON.") from None
    if not isinstance(found, dict):
        raise TextError(f"{name} is not a JSON object.")
    return found


def lines_of(files: Files, name: str) -> list[str]:
    """Lines end in a line feed alone: a token may be any other character."""
    lines = text_of(files, name).split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _refuse(constant: str) -> None:
    raise ValueError(constant)
