"""The code behind a picture: the core's own functions, as they stand in its files."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a file of this project."""

    path: str
    line: int
    code: str


@cache
def excerpt(function: Callable[..., Any]) -> Excerpt:
    """The lines that define this function or class."""
    function = inspect.unwrap(function)
    lines, first = inspect.getsourcelines(function)
    path = Path(inspect.getfile(function)).relative_to(ROOT)
    return Excerpt(path.as_posix(), first, inspect.cleandoc("".join(lines)))
