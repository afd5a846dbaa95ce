"""Measure: every benchmark once, one table, `docs/benchmarks.json`.

    python -m tests.benchmarks            all of them; writes the file
    python -m tests.benchmarks NAME ...   only these; prints them

A missed goal is printed and fails nothing. A benchmark that breaks is named at the end, and
the exit code is 1.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import torch

from docs import readme
from tests.benchmarks import clicks, core, learning, pictures, published, readers, running
from tests.benchmarks.measuring import NotMeasured, Row

BENCHMARKS: dict[str, Callable[[], Iterator[Row]]] = {
    "training-step": core.training_step,
    "training-batches": core.training_batches,
    "forward-watched": core.watched_forward,
    "forward-checkpoint": published.forward,
    "head-derived": published.one_head,
    "record-everything": published.everything,
    "memory-looking": published.memory,
    "open-checkpoint": published.opening,
    "generate-cached": core.cached_generation,
    "generate-checkpoint": published.generation,
    "ablate-heads": published.every_head_ablated,
    "cell-ledger": published.cell_ledger,
    "contributions": published.direct_contributions,
    "learn-rules": learning.rules,
    "learn-steps": learning.steps_of_the_page,
    "start": running.start,
    "checkpoint-heads": running.heads_of_a_folder,
    "click-head": clicks.another_head,
    "click-stage": clicks.one_stage,
    "click-rule": clicks.one_rule,
    "overview": pictures.overview,
    "overview-long": pictures.long_overview,
    "one-head": pictures.one_head,
    "all-heads": pictures.all_heads,
    "hover": pictures.hovering,
    "answer": readers.one_answer,
    "fifty-readers": readers.fifty,
    "memory-readers": readers.memory,
    "train-watched": running.training_with_the_page_open,
    "train-reverse": running.reverse_from_the_click,
}
ONE = "--one"
ENVIRONMENT = {
    "THP_MEM_ALLOC_ENABLE": "1",  # large tensors on large pages, as app.py asks torch for
    "HF_HUB_OFFLINE": "1",
    "STREAMLIT_LOGGER_LEVEL": "error",
}
LOOK = 2.0
"""Seconds between two benchmarks in which it is seen how many cores others have."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these: " + ", ".join(BENCHMARKS))
    parser.add_argument(ONE, metavar="FILE", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in BENCHMARKS]:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(BENCHMARKS)}")
    if asked.one:
        measure(asked.names[0], asked.one)
        return 0
    rows: list[dict[str, Any]] = []
    broken = []
    print(readme.figures_header(), flush=True)
    before = load()
    for name in asked.names or BENCHMARKS:
        found, ended = measured(name)
        after = load()
        for row in found:
            row["load"] = round(max(before, after), 1)
            print(readme.figures_row(row), flush=True)
        rows += found
        before = after
        if ended:
            broken.append(f"{name} broke (exit code {ended})")
    missed = sum(row["met"] is False for row in rows)
    print(f"\n{len(rows)} figures, {missed} of them miss their goal.", *broken, sep="\n")
    if not asked.names and not broken:
        readme.BENCHMARKS.write_text(as_json(rows), "utf-8")
        print(f"Written to {readme.BENCHMARKS.relative_to(readme.ROOT)}.")
    return 1 if broken else 0


def measured(name: str) -> tuple[list[dict[str, Any]], int]:
    """The rows of one benchmark from a process of its own, and that process's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows"
        out.touch()
        environment = {**os.environ, **ENVIRONMENT}
        command = [sys.executable, "-m", "tests.benchmarks", name, ONE, str(out)]
        ended = subprocess.run(command, env=environment, cwd=readme.ROOT).returncode
        lines = out.read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines], ended


def load() -> float:
    """How many cores others have now, while nothing is measured."""
    return psutil.cpu_percent(LOOK) / 100 * (os.cpu_count() or 1)


def measure(name: str, out: Path) -> None:
    """One benchmark, here; each row is a line of the file as soon as it is known."""
    torch.set_num_threads(1)
    with out.open("a", encoding="utf-8") as file:

        def tell(row: Row) -> None:
            print(json.dumps(dataclasses.asdict(row)), file=file, flush=True)

        try:
            for row in BENCHMARKS[name]():
                tell(row)
        except NotMeasured as reason:
            tell(Row(name, f"not measured: {reason}"))


def as_json(rows: list[dict[str, Any]]) -> str:
    machine = {
        "date": datetime.date.today().isoformat(),
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    return json.dumps({"machine": machine, "rows": rows}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
