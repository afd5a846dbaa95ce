"""Every key of every family's config with other values: as the reference reads it, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parity.cases import CASES
from tests.parity.config_fuzz import TURNED, Fuzz, changes_of, strays_of
from tests.parity.families import Case

STRAYS = strays_of(list(CASES.values()))
FUZZED = {case.name: case for case in (*CASES.values(), *TURNED)}
FIRST = {case.config.model_type: case for case in reversed(CASES.values())}
"""One case of each family."""
STEP = 89
"""Between the changes that the quick run tries."""


@pytest.mark.thorough
@pytest.mark.parametrize("case", FUZZED.values(), ids=str)
def test_no_value_is_read_otherwise(case: Case, tmp_path: Path) -> None:
    fuzz = Fuzz(case, tmp_path)
    report = fuzz.run(changes_of(case, fuzz.config, STRAYS))
    print(f"{case.name}: {report}")
    assert report.every_fault() == []


def test_no_value_of_a_few_is_read_otherwise(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for number, case in enumerate(FIRST.values()):
        fuzz = Fuzz(case, tmp_path / str(number))
        changes = changes_of(case, fuzz.config, STRAYS)
        report = fuzz.run([changes[number * STEP % len(changes)]])
        with subtests.test(case.name):
            assert report.every_fault() == []
