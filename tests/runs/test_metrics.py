"""Following a metrics file that is being written."""

from __future__ import annotations

import json
from pathlib import Path

from explorer.runs.metrics import Metrics, MetricsWriter, Row, cut_after


def write(path: Path, *rows: Row) -> None:
    writer = MetricsWriter(path)
    for row in rows:
        writer.add(row)
    writer.close()


def test_rows_come_back_as_they_went(tmp_path: Path) -> None:
    rows = [Row(0, value=0.1), Row(1, loss=3.0, lr=0.1, grad_norm=2.0), Row(2, 2.5, 0.1, 1.0, 0.2)]
    write(tmp_path / "m", *rows)
    metrics = Metrics(tmp_path / "m").update()
    assert metrics.rows == rows
    assert metrics.losses() == [(1, 3.0), (2, 2.5)]
    assert metrics.values() == [(0, 0.1), (2, 0.2)]


def test_following_reads_only_what_was_added(tmp_path: Path) -> None:
    path = tmp_path / "m"
    metrics = Metrics(path)
    assert metrics.update().rows == []
    write(path, Row(1, loss=1.0))
    assert len(metrics.update().rows) == 1
    with path.open("a") as file:
        file.write('{"step": 2, "lo')
        file.flush()
        assert len(metrics.update().rows) == 1
        file.write('ss": 0.5}\n')
    assert metrics.update().rows[-1] == Row(2, loss=0.5)
    assert len(metrics.rows) == 2


def test_damaged_lines_and_numbers_are_passed_over(tmp_path: Path) -> None:
    lines = [
        "nonsense",
        "[1]",
        '{"step": "x"}',
        '{"step": 3, "loss": NaN, "value": "high"}',
        "{" * 9,
    ]
    (tmp_path / "m").write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n")
    assert Metrics(tmp_path / "m").update().rows == [Row(3)]


def test_a_resumed_run_writes_the_rows_after_its_state_again(tmp_path: Path) -> None:
    path = tmp_path / "m"
    write(path, *(Row(step, loss=1.0) for step in range(1, 6)))
    with path.open("a") as file:
        file.write(json.dumps({"step": 6})[:5])
    metrics = Metrics(path).update()
    cut_after(path, 3)
    write(path, Row(4, loss=9.0))
    assert [row.step for row in metrics.update().rows] == [1, 2, 3, 4]
    assert metrics.rows[-1].loss == 9.0
    cut_after(tmp_path / "absent", 3)
