"""What a shared machine's host gave to others meanwhile, by the kernel's own account."""

from __future__ import annotations

import psutil


class Withheld:
    """Counts from its making on; `share()` is between 0 and 1, of all cores together.

    Only a virtual machine knows it ("steal" of /proc/stat); elsewhere it is 0.
    """

    def __init__(self) -> None:
        self.stolen, self.all = _counted()

    def share(self) -> float:
        stolen, passed = _counted()
        return (stolen - self.stolen) / max(passed - self.all, 0.01)


def _counted() -> tuple[float, float]:
    """Seconds since the start of the machine: withheld, and all."""
    times = psutil.cpu_times()
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return getattr(times, "steal", 0.0), sum(times) - guests
