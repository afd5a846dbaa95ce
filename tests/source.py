"""The project's own source files and what they import, for the tests of the house."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@cache
def files() -> tuple[Path, ...]:
    """Every file of the project that a commit would hold, relative to its root."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout
        found = [Path(name) for name in names.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive, without git
        found = [path.relative_to(ROOT) for path in ROOT.rglob("*") if ".venv" not in path.parts]
    return tuple(sorted(path for path in set(found) if (ROOT / path).is_file()))


def python_files(*rooms: str) -> list[Path]:
    """The Python files of these top-level folders or files; all of them when none is named."""
    python = [path for path in files() if path.suffix == ".py"]
    return [path for path in python if not rooms or path.parts[0] in rooms]


@cache
def imports(path: Path) -> frozenset[str]:
    """Every module this file imports, by its full dotted name; also inside functions."""
    return frozenset(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                package = ".".join(path.parts[: len(path.parts) - node.level])
                yield f"{package}.{node.module}" if node.module else package
            elif node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
