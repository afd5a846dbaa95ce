"""How much memory a model may take, so that a larger one is refused before it is read."""

import os
from pathlib import Path

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container says how much of its host it may use."""


def available_memory() -> int:
    """Bytes that are free or can be freed; in a container, at most its limit."""
    limits = [_available()]
    for name in LIMITS:
        try:
            limits.append(int(Path(name).read_text("ascii")))
        except (OSError, ValueError):  # none, or "max"
            continue
    return min(limits)


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
