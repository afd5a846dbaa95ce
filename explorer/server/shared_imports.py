"""What threads share of a module that one of them is importing: they wait until it is whole.

Pandas is imported when a table is drawn for the first time, since it takes 65 MB, and Python shows
it to every thread from its first line on. Altair and plotly look whether it is there with each
chart, and failed on half of it where another reader's table was the first.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

PANDAS = "pandas"


class _Awaited(ModuleType):
    """Who asks it for what it does not have waits for the thread that is importing it."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):  # Python's own, which it asks for while it makes the module
            import_module(self.__name__)  # at once where it is whole, or this thread imports it
        return super().__getattribute__(name)


class _Finder(MetaPathFinder):
    """Finds pandas where Python does, and has it made as one that is awaited."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == PANDAS else None
        if spec is not None and spec.loader is not None:
            spec.loader.create_module = _awaited  # type: ignore[method-assign]
        return spec


def _awaited(spec: ModuleSpec) -> ModuleType:
    return _Awaited(spec.name)


def wait_for_pandas() -> None:
    """From now on no thread sees half of it."""
    sys.meta_path.insert(0, _Finder())
