"""How much memory a model may take, so that a larger one is refused before it is read."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LIMITS = (
    ("", "/sys/fs/cgroup", "memory.max", "memory.current", "file", "shmem"),
    (
        "memory",
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_cache",
        "total_shmem",
    ),
)
"""Where a control group says how much of its host it may use and does, and how much are files.

By both versions of the kernel's interface; the first entry is what `MEMBERSHIP` calls each. Files
are read again when the memory is needed for something else, but for those that are in memory
alone, which the last entry counts.
"""
MEMBERSHIP = "/proc/self/cgroup"
"""The control groups of this process: a container sees its own as the root, a service does not."""


def available_memory() -> int:
    """Bytes that are free or can be freed; in a container, at most the rest of its limit."""
    groups = [(folder, names) for of, root, *names in LIMITS for folder in _groups(of, root)]
    return min([_available(), *(_left(folder, *names) for folder, names in groups)])


def _groups(controller: str, root: str) -> Iterator[str]:
    """The folders of the group of this process and of those around it, each with its limit."""
    yield root
    with suppress(OSError, ValueError):
        for line in Path(MEMBERSHIP).read_text("utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                inner = Path(path.lstrip("/"))
                yield from (str(Path(root, group)) for group in (inner, *inner.parents))


def _left(folder: str, most: str, used: str, files: str, in_memory: str) -> int:
    """Bytes that a group may still take, where it has a limit."""
    try:
        left = int(_read(folder, most)) - int(_read(folder, used))
    except (OSError, ValueError):  # none, or "max"
        return 1 << 62
    with suppress(OSError, ValueError, KeyError):
        listed = dict(line.split() for line in _read(folder, "memory.stat").splitlines())
        left += max(int(listed[files]) - int(listed.get(in_memory, 0)), 0)
    return max(left, 0)


def _read(folder: str, name: str) -> str:
    return Path(folder, name).read_text("ascii")


def _available() -> int:
    """Bytes that the kernel could give away now; where it does not say, all memory."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvail"))
    except (OSError, ValueError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 62
