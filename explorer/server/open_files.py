"""The process's open files: as many as the system lets it have, and how many are left."""

from __future__ import annotations

import os
import resource

MOST = 65_536
"""A system without a bound gives a billion, and whatever closes all of a child's counts to it."""

KEPT = 256
"""For what is no connection: models, runs, the cluster, and sockets still in their handshake."""


def raise_soft_limit() -> int:
    """The soft limit (1,024 as a rule, so 160 readers) becomes the hard one; what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return soft


def are_scarce() -> bool:
    """Whether nearly all that may be open are; where the system does not say, nothing is scarce."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        used = len(os.listdir("/proc/self/fd"))
    except OSError:
        return False
    return soft != resource.RLIM_INFINITY and used > soft - min(KEPT, soft // 4)
