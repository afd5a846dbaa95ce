"""The core reads as a book: its order is told, complete, and needs nothing that comes later."""

import ast
import re
from pathlib import Path

import models

CORE = Path(models.__file__).parent


def order() -> list[str]:
    """The modules that the docstring of `models` numbers, in their order."""
    steps = re.findall(r"^\d+\. (.*?):", models.__doc__ or "", re.MULTILINE)
    return [name for step in steps for name in re.findall(r"`(\w+)`", step)]


def test_every_module_is_in_the_reading_order_once() -> None:
    modules = {path.stem for path in CORE.glob("*.py")} - {"__init__"}
    assert sorted(order()) == sorted(modules)


def test_no_module_needs_a_later_one() -> None:
    known: set[str] = set()
    for name in order():
        for node in ast.parse((CORE / f"{name}.py").read_text("utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("models."):
                assert (node.module or "").removeprefix("models.") in known, name
        known.add(name)
