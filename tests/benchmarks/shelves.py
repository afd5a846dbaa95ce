"""What a page costs where many runs were trained, beside where few were."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from explorer.catalog.folders import shipped_root
from explorer.runs.run import Run, create
from explorer.runs.run_files import write_json
from explorer.runs.spec import DONE, RunSpec, Status
from explorer.tasks import TASKS
from tests.benchmarks import measuring
from tests.benchmarks.measuring import Row, by_turns
from tests.benchmarks.places import an_app
from tests.benchmarks.readers import core_seconds

MANY, FEW = 10_000, 10


def many_runs() -> Iterator[Row]:
    """Core time of the server, another head on Attention."""
    with an_app() as much, an_app() as little:
        put(much.runs, MANY)
        put(little.runs, FEW)
        (found,) = by_turns(
            lambda: [asyncio.run(core_seconds(much, "attention"))],
            lambda: [asyncio.run(core_seconds(little, "attention"))],
            rounds=5,
        )
    what = f"server time of one answer with {MANY:,} runs"
    yield measuring.compared(what, found, f"with {FEW}", 1.1)


def put(root: Path, count: int) -> None:
    """So many finished runs, each a folder of its own, all with the shipped model's weights."""
    task = TASKS["reverse"]
    first = create(root, RunSpec("reverse", task.model, task.training))
    write_json(first.folder / "status.json", Status(DONE, 400, 400).to_dict())
    for number in range(1, count + 1):
        run = Run(root / f"reverse-{number}")
        if number > 1:
            run.folder.mkdir()
            for name in ("spec.json", "status.json"):
                (run.folder / name).hardlink_to(first.folder / name)
        (run.folder / "checkpoint").symlink_to(shipped_root() / "reverse")
