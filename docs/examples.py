"""Runs the Python of these pages and writes what it prints below it: `python -m docs.examples`.

The blocks of a page run one after another, in one namespace, in the root of the project; a block
```text after one is what it prints. A test compares the two.
"""

import contextlib
import io
import re
from pathlib import Path

import torch

from docs.readme import PAGES

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL)


def with_output(text: str) -> str:
    """A page, each block of Python followed by what it prints now."""
    names: dict[str, object] = {}
    return BLOCK.sub(lambda found: run(found[1], names), text)


def run(lines: str, names: dict[str, object]) -> str:
    """One block as the page has it: its lines, and what they print if they do."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), torch.random.fork_rng():
        exec(compile(lines, "<page>", "exec"), names)  # noqa: S102 (our own pages)
    said = printed.getvalue()
    return f"```python\n{lines}```\n" + (f"\n```text\n{said}```\n" if said else "")


def pages() -> list[Path]:
    """Those that have Python."""
    return [page for page in PAGES if BLOCK.search(page.read_text("utf-8"))]


if __name__ == "__main__":
    torch.set_num_threads(1)
    for page in pages():
        page.write_text(with_output(page.read_text("utf-8")), "utf-8")
