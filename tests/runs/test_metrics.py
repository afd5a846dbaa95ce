"""Following a metrics file that is being written."""

from pathlib import Path

from explorer.runs.metrics import Metrics, MetricsRow, MetricsWriter, cut_after


def write(path: Path, *rows: MetricsRow) -> None:
    writer = MetricsWriter(path)
    for row in rows:
        writer.add(row)
    writer.close()


def test_rows_come_back_as_they_went(tmp_path: Path) -> None:
    first, second = MetricsRow(0, value=0.1), MetricsRow(1, loss=3.0, lr=0.1, grad_norm=2.0)
    rows = [first, second, MetricsRow(2, 2.5, 0.1, 1.0, 0.2)]
    write(tmp_path / "m", *rows)
    metrics = Metrics(tmp_path / "m").update()
    assert metrics.rows == rows
    assert metrics.losses() == [(1, 3.0), (2, 2.5)]
    assert metrics.values() == [(0, 0.1), (2, 0.2)]


def test_following_reads_only_whole_lines_that_were_added(tmp_path: Path) -> None:
    path = tmp_path / "m"
    metrics = Metrics(path)
    assert metrics.update().rows == []
    write(path, MetricsRow(1, loss=1.0))
    with path.open("a") as file:
        file.write('{"step": 2, "lo')
        file.flush()
        assert metrics.update().rows == [MetricsRow(1, loss=1.0)]
        file.write('ss": 0.5}\n')
    assert metrics.update().rows == [MetricsRow(1, loss=1.0), MetricsRow(2, loss=0.5)]


def test_damaged_lines_and_numbers_are_passed_over(tmp_path: Path) -> None:
    damaged = b'nonsense\n[1]\n{"step": "x"}\n{{{{{{{{{\n\xff\xfe\n'
    absurd = f'{{"step": 1{"0" * 300}}}\n{{"step": -1}}\n{{"step": true}}\n'.encode()
    numbers = f'{{"step": 3, "loss": NaN, "value": "high", "lr": 1{"0" * 400}}}\n'.encode()
    (tmp_path / "m").write_bytes(damaged + absurd + numbers)
    assert Metrics(tmp_path / "m").update().rows == [MetricsRow(3)]


def test_a_resumed_run_writes_the_rows_after_its_state_again(tmp_path: Path) -> None:
    path = tmp_path / "m"
    write(path, *(MetricsRow(step, loss=1.0) for step in range(1, 6)))
    with path.open("a") as file:
        file.write('{"ste')
    metrics = Metrics(path).update()
    cut_after(path, 3)
    write(path, MetricsRow(4, loss=9.0))
    assert [row.step for row in metrics.update().rows] == [1, 2, 3, 4]
    assert metrics.rows[-1].loss == 9.0
    cut_after(tmp_path / "absent", 3)
