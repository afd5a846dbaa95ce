"""A benchmark runs alone: in a fresh process, without the checks the other tests carry.

The test function named in the report is not run here but by a second pytest that
runs only it, so a figure never depends on which tests came before. A neighbour on the
machine can spoil a figure, so a missed bar is measured again; the report has every
measurement, the missed ones too, each with the share of the machine that its host withheld.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.withheld import Withheld
from tests.side_by_side import FIGURE

HERE = Path(__file__).parent
MEASURING = "EXPLORER_MEASURING"
LARGE_PAGES = "THP_MEM_ALLOC_ENABLE"
"""Large tensors on large pages, as app.py asks torch for."""

ATTEMPTS = 3


class Measured(pytest.Item):
    """Stands in the report for a benchmark that a second pytest runs.

    It asks for no fixture, so no server and no browser of this process is started for it, and
    no test of another process runs meanwhile. What may remain are servers and browsers that
    tests of all processes share: they wait, with no page of the app open.
    """

    def runtest(self) -> None:
        figures: list[str] = []
        for attempt in range(1, ATTEMPTS + 1):
            withheld = Withheld()
            child = self.measure()
            lines = child.stdout.splitlines()
            again = f", measurement {attempt}" if attempt > 1 else ""
            beside = f" ({withheld.share():.0%} of the machine withheld{again})"
            figures += [line + beside for line in lines if ": measured " in line]
            if not child.returncode:
                break
        else:
            pytest.fail(
                "\n".join([*figures, child.stdout[-6000:], child.stderr[-2000:]]), pytrace=False
            )
        for line in lines:
            if line.startswith("SKIPPED "):
                pytest.skip(line)
        self.user_properties.extend((FIGURE, figure) for figure in figures)

    def measure(self) -> subprocess.CompletedProcess[str]:
        # Not one of the processes that run side by side: this one waits for it.
        mine = {name: value for name, value in os.environ.items() if "XDIST" not in name}
        return subprocess.run(
            [sys.executable, *"-m pytest -q -s -rs -n 0 -p no:cacheprovider".split(), self.nodeid],
            env={**mine, MEASURING: "1", LARGE_PAGES: "1"},
            cwd=self.config.rootpath,
            capture_output=True,
            text=True,
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mine = [item for item in items if item.path.is_relative_to(HERE)]
    others = [item for item in items if item not in mine]
    for item in mine:
        item.add_marker(pytest.mark.bench)
        item.add_marker(pytest.mark.timeout(600 * ATTEMPTS))
    items[:] = others + (mine if os.environ.get(MEASURING) else [_measured(item) for item in mine])


def _measured(item: pytest.Item) -> pytest.Item:
    assert item.parent is not None
    stand_in: pytest.Item = Measured.from_parent(item.parent, name=item.name)
    stand_in.own_markers.extend(item.own_markers)
    return stand_in
