"""Writes `addresses.md`, every parameter of an address, from its table: `python -m docs.addresses`.

A test compares the two.
"""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from explorer.app.address_parameters import DEFAULTS, PARAMETERS, Parameter
from explorer.lessons.lesson import FIRST_PAGE

FILE = Path(__file__).with_name("addresses.md")
TOP = """# Addresses

Every choice is in the address, so a link or a bookmark opens what it was made of:
`/attention?model=translation&text=the+cat&layer=1&head=3`. A parameter that is left out has its
default. A value that does not exist is replaced by the default, with a message that says so.
**Share**, at the foot of the sidebar, makes a link of it, which says the version of this language,
and hides controls [for a class](how_to/share_with_a_class.md).

`python -m docs.addresses` writes this page from `explorer/app/address_parameters.py`.
"""
COLUMNS = ("Parameter", "Control", "Type", "Values", "Default")


def text() -> str:
    """The whole page."""
    sections = [TOP]
    for pages, rows in groupby(sorted(PARAMETERS, key=_pages), key=_pages):
        title = ", ".join(map(_address, pages)) or "Every page"
        cells = (
            (f"`{row.name}`", row.label or "–", row.kind, row.values, _default(row)) for row in rows
        )
        sections.append(f"## {title}\n\n{table(COLUMNS, cells)}")
    return "\n".join(sections)


def _default(row: Parameter) -> str:
    if in_words := row.default or DEFAULTS.get(row.kind):
        return in_words
    return f"{row.usual:{'' if isinstance(row.usual, bool) else 'g'}}".lower()


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _address(page: str) -> str:
    """Of a page, by its name; the first one is at the root, where its name leads as well."""
    return "`/`" if page == FIRST_PAGE else f"`/{page}`"


def _pages(row: Parameter) -> tuple[str, ...]:
    return row.pages


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
