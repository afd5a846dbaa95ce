"""What the page Runs claims of runs, counted again from their files."""

import json
from collections.abc import Callable

from explorer.runs.run import Run
from tests.browser.truth.screen import Claim, said
from tests.browser.visiting import Visitor

N = r"([\d.,−e]+)"


def best(run: Run) -> tuple[float, int]:
    """The best share, and the first step that had it."""
    lines = (run.folder / "metrics.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if "value" in row]
    top = max(row["value"] for row in rows)
    return top, next(row["step"] for row in rows if row["value"] == top)


def race(visitor: Visitor, runs: list[Run]) -> list[Claim]:
    """Who leads, with what, and since when."""
    found = [best(run) for run in runs]
    top = max(value for value, _ in found)
    first = min(step for value, step in found if value == top)
    value, step = said(visitor, rf"exact match {N}\D.* at step {N}\.")
    return [Claim("best", value, top), Claim("step", step, first)]


def table(visitor: Visitor, runs: list[Run]) -> list[Claim]:
    """How many runs there are, and what they hold on disk, in MB."""
    root = runs[0].folder.parent
    there = [
        path
        for path in root.iterdir()
        if (path / "spec.json").is_file() and "-run-" not in path.name
    ]
    held = sum(file.stat().st_size for each in there for file in each.rglob("*") if file.is_file())
    count, size = said(visitor, rf"{N} runs · {N} MB of")
    return [Claim("runs", count, len(there)), Claim("MB", size, held / 1e6)]


VIEWS: dict[str, Callable[[Visitor, list[Run]], list[Claim]]] = {
    "All runs": table,
    "Races and sweeps": race,
}
