"""The process's open files: as many as the system lets it have, and how many are left."""

from __future__ import annotations

import os

from explorer.system.operating_system import INFINITY, limit, limits

MOST = 65_536
"""A system without a bound gives a billion, and whatever closes all of a child's counts to it."""

KEPT = 256
"""For what is no connection: models, runs, the cluster, and sockets still in their handshake."""


def raise_soft_limit() -> int:
    """The soft limit (1,024 as a rule, so 160 readers) becomes the hard one; what it is now."""
    soft, hard = limits("NOFILE")
    most = MOST if hard == INFINITY else min(hard, MOST)
    if soft != INFINITY and soft < most:
        limit(NOFILE=most)
        return most
    return soft


def are_scarce() -> bool:
    """Whether nearly all that may be open are; where the system does not say, nothing is scarce."""
    soft, _ = limits("NOFILE")
    try:
        used = len(os.listdir("/proc/self/fd"))
    except OSError:
        return False
    return soft != INFINITY and used > soft - min(KEPT, soft // 4)
