"""How much memory is left for a model, on a machine and in a container."""

from pathlib import Path

import pytest

from models.loading import memory

LEFT = [
    ("800", "300", "anon 200\n{files} 100\n", 600),
    ("800", "300", "anon 300\ncache 9\n", 500),
    ("800", "300", "no table", 500),
    ("800", "300", "{files} 100\n{in_memory} 70\n", 530),
    ("800", "300", "{in_memory} 70\n{files} 50\n", 500),
    ("800", "300", "{files} 100\n{in_memory} 0\nshmem_thp 90\n", 600),
    ("800", "900", "{files} 50", 0),
    ("5000", "300", "{files} 100", 1_000),
    ("max", "300", "{files} 100", 1_000),
    ("", "", "", 1_000),
]
"""What a group may take, what it takes, what the kernel says of it, and what is left of 1,000."""
KERNEL = (
    ("memory.max", "memory.current", "file", "shmem"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem"),
)
"""The names in both versions of its interface."""


def test_in_a_container_its_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it holds in memory alone is no room."""
    monkeypatch.setattr(memory, "_available", lambda: 1_000)
    for limits, (limit, usage, files, in_memory) in zip(memory.LIMITS, KERNEL, strict=True):
        monkeypatch.setattr(memory, "LIMITS", [(limits[0], str(tmp_path), *limits[2:])])
        assert memory.available_memory() == 1_000, "no such file"
        for most, used, stat, left in LEFT:
            stat = stat.format(files=files, in_memory=in_memory)
            for name, content in {limit: most, usage: used, "memory.stat": stat}.items():
                (tmp_path / name).write_text(content)
            assert memory.available_memory() == left, (most, used, stat)


@pytest.mark.parametrize(
    ("membership", "inner"),
    [
        ("0::/system.slice/explorer.service\n", "system.slice/explorer.service"),
        ("0::/system.slice/explorer.service/child\n", "system.slice/explorer.service"),
        ("1:cpu,memory:/elsewhere\n0::/system.slice/explorer.service", "system.slice"),
        ("0::/", ""),
        ("no line of a group", ""),
    ],
)
def test_the_limit_of_a_service_and_of_those_around_it_holds(
    membership: str, inner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a tree of files as the kernel shows it: `memory.max` of a service, and of a container."""
    root, host = tmp_path / "cgroup", tmp_path / "membership"
    for group, most in {"": "max", inner: "800", "elsewhere": "100"}.items():
        (root / group).mkdir(parents=True, exist_ok=True)
        (root / group / "memory.max").write_text(f"{most}\n")
        (root / group / "memory.current").write_text("300\n")
        (root / group / "memory.stat").write_text("anon 200\nfile 90\nshmem 40\n")
    host.write_text(membership)
    monkeypatch.setattr(memory, "_available", lambda: 1_000)
    monkeypatch.setattr(memory, "MEMBERSHIP", str(host))
    monkeypatch.setattr(memory, "LIMITS", [("", str(root), *memory.LIMITS[0][2:])])
    assert memory.available_memory() == 550
