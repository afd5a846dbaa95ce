"""The tests keep to `budget.toml`, and what is above it fails in a sentence."""

from collections import Counter
from pathlib import Path

import pytest

from tests import budget


def test_the_tests_keep_to_their_budget(pytestconfig: pytest.Config) -> None:
    lines = budget.lines()
    counts = {(folder, "line"): count for folder, count in lines.items()}
    counts["all", "line"] = lines.total()
    cases = pytestconfig.stash[budget.BROWSER_CASES]
    counts |= {(folder, "case"): count for folder, count in cases.items()}
    assert [*budget.excess(counts)] == []


def test_the_folders_together_keep_to_the_goal() -> None:
    allowed = budget.budget()
    sums: Counter[str] = Counter()
    for folder, most in allowed.items():
        sums.update(most if folder != "all" else {})
    assert {kind: total for kind, total in sums.items() if total > allowed["all"][kind]} == {}


def test_a_load_above_the_budget_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(budget.LEDGER, str(tmp_path / "ledger"))
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/docs/test_site.py::test_site (call)")
    with pytest.raises(AssertionError, match="tests/docs has 1 loads and its budget is 0: use few"):
        budget.spend("load")
    assert budget.used() == {("docs", "load"): 1}
