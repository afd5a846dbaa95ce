"""How much memory is left for a model, on a machine and in a container."""

from pathlib import Path

import pytest

from models.loading import memory


def test_in_a_container_it_is_what_is_left_of_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_available", lambda: 1_000)
    monkeypatch.setattr(memory, "LIMITS", [("", str(tmp_path), "most", "used", "file", "shmem")])
    for most, used, stat, left in [
        ("800", "300", "anon 200\nfile 100\n", 600),
        ("800", "300", "anon 300\n", 500),
        ("800", "300", "no table", 500),
        ("800", "300", "file 100\nshmem 70\n", 530),
        ("800", "300", "shmem 70\nfile 50\n", 500),
        ("800", "300", "file 100\nshmem 0\nshmem_thp 90\n", 600),
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


BY_VERSION = (
    {
        "memory.max": "800",
        "memory.current": "300",
        "memory.stat": "anon 100\nfile 200\nshmem 150\nfile_mapped 9\n",
    },
    {
        "memory.limit_in_bytes": "800",
        "memory.usage_in_bytes": "300",
        "memory.stat": "cache 1\nshmem 1\ntotal_cache 200\ntotal_shmem 150\n",
    },
)


def test_what_a_container_holds_in_memory_alone_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the names that both versions of the kernel's interface have for it."""
    monkeypatch.setattr(memory, "_available", lambda: 1_000)
    for (of, _, *names), files in zip(memory.LIMITS, BY_VERSION, strict=True):
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        monkeypatch.setattr(memory, "LIMITS", [(of, str(tmp_path), *names)])
        assert memory.available_memory() == 550


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
