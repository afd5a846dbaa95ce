"""How much memory is left for a model, on a machine and in a container."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.loading import memory


def test_in_a_container_it_is_what_is_left_of_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_available", lambda: 1_000)
    monkeypatch.setattr(memory, "LIMITS", [(str(tmp_path), "most", "used", "file")])
    for most, used, stat, left in [
        ("800", "300", "anon 200\nfile 100\n", 600),
        ("800", "300", "anon 300\n", 500),
        ("800", "300", "no table", 500),
        ("800", "900", "file 50", 0),
        ("5000", "300", "file 100", 1_000),
        ("max", "300", "file 100", 1_000),
        ("", "", "", 1_000),
    ]:
        for name, content in {"most": most, "used": used, "memory.stat": stat}.items():
            (tmp_path / name).write_text(content)
        assert memory.available_memory() == left, (most, used, stat)
    for file in tmp_path.iterdir():
        file.unlink()
    assert memory.available_memory() == 1_000
