"""What a process that the app starts is given of the environment: what it needs, and no secret.

The server's has the token of who runs it and the key that signs forms, and perhaps those of other
programs: whoever takes over a child by a hostile file is to find none of them there.
"""

from __future__ import annotations

import os

ALWAYS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


def child_environment(*also: str) -> dict[str, str]:
    """Those of these variables that are set."""
    return {name: os.environ[name] for name in (*ALWAYS, *also) if name in os.environ}
