"""Run every benchmark once and print one table.

    python -m tests.benchmarks            all of them; writes docs/benchmarks.json
    python -m tests.benchmarks NAME ...   only these; the file stays as it is
    python -m tests.benchmarks --renew NAME ...   only these; the file has their rows anew

A missed goal is printed and fails nothing. A benchmark that cannot measure says why in a row, and
the others go on; where one broke, the exit code is 1.
"""

import argparse
import datetime
import json
import os
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from typing import Any

import psutil
import torch

from docs import readme
from tests.benchmarks import (
    clicks,
    learning,
    pictures,
    published,
    readers,
    running,
    training,
    whole_pass,
)
from tests.benchmarks.measuring import BROKEN, Benchmark, broken, measure

BENCHMARKS: dict[str, Benchmark] = {
    "training-step": training.step,
    "train-together": training.two_processes,
    "training-batches": training.batches,
    "forward-watched": published.watched_forward,
    "forward-checkpoint": published.forward,
    "head-derived": published.one_head,
    "record-everything": published.everything,
    "memory-looking": published.memory,
    "open-checkpoint": published.opening,
    "open-gguf": published.opening_gguf,
    "generate-cached": published.cached_generation,
    "generate-checkpoint": published.generation,
    "ablate-heads": published.every_head_ablated,
    "query-key-pair": published.one_pair,
    "programs": whole_pass.programs,
    "score-sources": published.sources_of_a_score,
    "contributions": published.direct_contributions,
    "train-bpe": learning.bpe_training,
    "bpe-steps": learning.steps_of_the_page,
    "start": running.start,
    "checkpoint-heads": running.heads_of_a_folder,
    "click-head": clicks.another_head,
    "click-stage": clicks.one_stage,
    "click-merge": clicks.one_merge,
    "overview": pictures.overview,
    "overview-long": pictures.long_overview,
    "one-head": pictures.one_head,
    "all-heads": pictures.all_heads,
    "hover": pictures.hovering,
    "map-first-paint": whole_pass.first_paint,
    "map-message": whole_pass.message,
    "map-shares": whole_pass.shares,
    "map-frames": whole_pass.frames,
    "map-hover": whole_pass.hovering,
    "map-typing": whole_pass.typing,
    "map-head": clicks.head_of_smollm2,
    "map-memory": whole_pass.memory,
    "answer": readers.one_answer,
    "many-runs": readers.many_runs,
    "fifty-readers": readers.fifty,
    "full-runs": readers.whole_pages,
    "memory-readers": readers.memory,
    "memory-walk": readers.walking,
    "replicas": readers.replicas,
    "connected": readers.connected,
    "train-watched": running.training_with_the_page_open,
    "train-reverse": running.reverse_from_the_click,
}
ENVIRONMENT = {
    "THP_MEM_ALLOC_ENABLE": "1",  # large tensors on large pages, as app.py asks torch for
    "HF_HUB_OFFLINE": "1",
    "STREAMLIT_LOGGER_LEVEL": "error",
}
LOOK = 2.0
"""Seconds between two benchmarks in which it is seen how many cores others have."""


def main() -> int:
    as_it_is = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m tests.benchmarks", formatter_class=as_it_is)
    parser.description = __doc__
    parser.epilog = "benchmarks:\n  " + "\n  ".join(BENCHMARKS)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--renew", action="store_true", help="write these rows into the file")
    given = parser.parse_args()
    asked: list[str] = given.names
    if unknown := [name for name in asked if name not in BENCHMARKS]:
        parser.error(f"no benchmark is called {', '.join(unknown)}; --help lists them")
    os.environ |= ENVIRONMENT
    rows: list[dict[str, Any]] = []
    print(readme.figures_header(), flush=True)
    before = load()
    for name in asked or BENCHMARKS:
        print(f"{name} …", file=sys.stderr, flush=True)
        with ProcessPoolExecutor(1, get_context("spawn")) as apart:
            ended = apart.submit(measure, name, BENCHMARKS[name])
        error = ended.exception()  # the process was killed; any other is a row
        after = load()
        told = {"load": round(max(before, after), 1), "benchmark": name, "date": today()}
        for row in [broken(name, error)] if error else ended.result():
            rows.append({**asdict(row), **told})
            print(readme.figures_row(rows[-1]), flush=True)
        before = after
    missed = sum(row["met"] is False for row in rows)
    broke = [row for row in rows if row["ours"].startswith(BROKEN)]
    print(f"\nFigures: {len(rows)}, of which {missed} miss their goal and {len(broke)} broke.")
    if given.renew or not asked:
        readme.BENCHMARKS.write_text(renewed(rows) if asked else as_json(rows, machine()), "utf-8")
        print(f"Written to {readme.BENCHMARKS.relative_to(readme.ROOT)}.")
    return 1 if broke else 0


def load() -> float:
    """How many cores others have now, while nothing is measured."""
    return psutil.cpu_percent(LOOK) / 100 * (os.cpu_count() or 1)


def renewed(rows: list[dict[str, Any]]) -> str:
    """The file with these rows instead of those of the same benchmarks."""
    found = json.loads(readme.BENCHMARKS.read_text("utf-8"))
    new, places = {row["benchmark"] for row in rows}, list(BENCHMARKS)
    others = (row for row in found["rows"] if row["benchmark"] in set(places) - new)
    in_order = sorted([*others, *rows], key=lambda row: places.index(row["benchmark"]))
    return as_json(in_order, found["machine"])


def today() -> str:
    return datetime.date.today().isoformat()


def machine() -> dict[str, Any]:
    return {
        "date": today(),
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def as_json(rows: list[dict[str, Any]], on: dict[str, Any]) -> str:
    return json.dumps({"machine": on, "rows": rows}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
