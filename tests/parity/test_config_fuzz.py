"""Every key of every family's config with other values: as the reference reads it, or refused."""

from pathlib import Path

import pytest

from tests.parity import config_fuzz
from tests.parity.cases import CASES
from tests.parity.families import Case

STRAYS = config_fuzz.strays_of(list(CASES.values()))
FUZZED = {case.name: case for case in (*CASES.values(), *config_fuzz.TURNED)}
FIRST = {case.config.model_type: case for case in reversed(CASES.values())}
"""One case of each family."""
STEP = 89
"""Between the changes that the quick run tries."""


@pytest.mark.thorough
@pytest.mark.parametrize("case", FUZZED.values(), ids=str)
def test_no_value_is_read_otherwise(case: Case, tmp_path: Path) -> None:
    fuzz = config_fuzz.Fuzz(case, tmp_path)
    report = fuzz.run(config_fuzz.changes_of(case, fuzz.config, STRAYS))
    print(f"{case.name}: {report}")
    assert report.every_fault() == []


def test_no_value_of_a_few_is_read_otherwise(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """One change of each family, and every key absent without which the weights still fit."""
    for number, case in enumerate(FIRST.values()):
        fuzz = config_fuzz.Fuzz(case, tmp_path / str(number))
        changes = config_fuzz.changes_of(case, fuzz.config, STRAYS)
        absent = config_fuzz.every_key_absent(case, fuzz.config)
        report = fuzz.run([changes[number * STEP % len(changes)], absent])
        with subtests.test(case.name):
            assert report.every_fault() == []
