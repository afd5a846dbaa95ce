"""Who meets the limits of circuits: too many pairs, too large a table, too large a finding."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from explorer.circuits.finding import FindingError, finding_from
from explorer.circuits.pair_table import pairs_of_csv
from explorer.circuits.text_pairs import PairError


def _refused(data: bytes) -> str:
    with pytest.raises(PairError) as refused:
        pairs_of_csv(data)
    return str(refused.value)


def pairs(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_PAIRS", "2")
    assert len(pairs_of_csv(b"a,b\n" * 2)) == 2
    return _refused(b"a,b\n" * 3)


def table(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_TABLE_BYTES", "8")
    assert len(pairs_of_csv(b"a,b\n" * 2)) == 2
    return _refused(b"a,b\n" * 3)


def finding(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_FINDING_BYTES", "8")
    with pytest.raises(FindingError) as refused:
        finding_from(b"{" * 9)
    return str(refused.value)


MEETINGS: dict[str, Callable[..., str]] = {
    "pairs": pairs,
    "table_bytes": table,
    "finding_bytes": finding,
}
