"""What each folder of tests may use: lines, browser cases, cold page loads and started servers.

None of these depends on the clock, and each of them is what makes a run of all tests slow. Loads
and servers are counted while they happen, by all processes of a run, in one file.
"""

import os
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LEDGER = "EXPLORER_TEST_LEDGER"
"""The environment variable with the path of the file that all processes of a run write to."""
BROWSER_CASES = pytest.StashKey[Counter[str]]()
"""By folder, how many of the collected tests drive a browser."""

Budget = Mapping[str, Mapping[str, int]]


def budget() -> Budget:
    """By folder, and for all together under `all`, what may be used."""
    return tomllib.loads((TESTS / "budget.toml").read_text("utf-8"))


def folder_of(path: str) -> str:
    """The folder below `tests` that a path or the name of a test belongs to."""
    inside = path.partition("::")[0].removeprefix("tests/").split("/")
    return inside[0] if len(inside) > 1 else "tests"


def lines() -> Counter[str]:
    """Lines of Python by folder."""
    found: Counter[str] = Counter()
    for path in TESTS.rglob("*.py"):
        folder = folder_of(path.relative_to(TESTS.parent).as_posix())
        found[folder] += path.read_text("utf-8").count("\n")
    return found


def used() -> Counter[tuple[str, str]]:
    """What this run has used so far, by folder and kind."""
    ledger = Path(os.environ.get(LEDGER, os.devnull)).read_text("utf-8").splitlines()
    return Counter((folder, kind) for folder, kind in map(str.split, ledger))


def spend(kind: str) -> None:
    """Count one `load` or `server` for the test that runs; AssertionError above the budget."""
    test = os.environ.get("PYTEST_CURRENT_TEST")
    if test is None or LEDGER not in os.environ:  # a benchmark
        return
    folder = folder_of(test)
    with Path(os.environ[LEDGER]).open("a", encoding="utf-8") as ledger:
        ledger.write(f"{folder} {kind}\n")
    over = [*excess(Counter({key: n for key, n in used().items() if key == (folder, kind)}))]
    assert not over, over[0]


def excess(counts: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """A sentence for everything above the budget; a folder that has none may use nothing."""
    allowed = budget()
    for (folder, kind), count in sorted(counts.items()):
        most = allowed.get(folder, {}).get(kind, 0)
        if count > most:
            yield (
                f"tests/{folder} has {count:,} {kind}s and its budget is {most:,}: "
                "use fewer, or raise the number in tests/budget.toml"
            )
