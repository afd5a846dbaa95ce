"""How much memory a model may take, so that a larger one is refused before it is read."""

import os
from contextlib import suppress
from pathlib import Path

LIMITS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "file", "shmem"),
    (
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_cache",
        "total_shmem",
    ),
)
"""Where a container says how much of its host it may use and does, and how much of that are files.

Those are read again when the memory is needed for something else, but for the files that are in
memory alone, which the last entry counts.
"""


def available_memory() -> int:
    """Bytes that are free or can be freed; in a container, at most what is left of its limit."""
    return min([_available(), *map(_left, LIMITS)])


def _left(limit: tuple[str, ...]) -> int:
    """What a container may still take, where it has a limit."""
    folder, most, used, files, in_memory = limit
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
    """What the kernel could give away now; where it does not say, all memory there is."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvail"))
    except (OSError, ValueError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 62
