"""Who meets the limits of circuits: too many pairs or edges, too large a table or finding."""

from collections.abc import Callable

import pytest

from explorer.analysis.wiring import WiringError, plain_wiring, wiring_of
from explorer.circuits.finding import FindingError, finding_from
from explorer.circuits.pair_table import pairs_of_csv
from explorer.circuits.text_pairs import PairError
from tests.models.building import config_of


def _refused(data: bytes) -> str:
    with pytest.raises(PairError) as refused:
        pairs_of_csv(data)
    return str(refused.value)


def pairs(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_PAIRS", "2")
    assert len(pairs_of_csv(b"a,b\n" * 2)) == 2
    return _refused(b"a,b\n" * 3)


def edges(monkeypatch: pytest.MonkeyPatch) -> str:
    config = config_of("decoder")
    count = wiring_of(config).edges
    monkeypatch.setenv("EXPLORER_LIMIT_EDGES", str(count))
    assert wiring_of(config).edges == count
    monkeypatch.setenv("EXPLORER_LIMIT_EDGES", str(count - 1))
    with pytest.raises(WiringError) as refused:
        wiring_of(config)
    assert plain_wiring(config).columns, "its parts have scores"
    return str(refused.value)


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
    "edges": edges,
    "table_bytes": table,
    "finding_bytes": finding,
}
