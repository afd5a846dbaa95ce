"""Who runs the server, from anywhere: by a token that the server was started with.

EXPLORER_ADMIN_TOKEN has it; without it nobody is let in. A reader types it into the page, so it is
in no address and no log.
"""

from __future__ import annotations

import hmac
import os
from hashlib import sha256

SETTING = "EXPLORER_ADMIN_TOKEN"
SHORTEST = 16
"""Characters; what is shorter could be guessed."""


def is_set() -> bool:
    """Whether anybody can be let in."""
    return bool(os.environ.get(SETTING))


def fault() -> str | None:
    """One sentence saying what is wrong with the setting, for whoever starts the server."""
    if is_set() and len(os.environ[SETTING]) < SHORTEST:
        return f"{SETTING} must have at least {SHORTEST} characters, so that nobody guesses it."
    return None


def is_right(said: str) -> bool:
    """Whether this is the token; the time that it takes says nothing of how far it is right."""
    token = os.environ.get(SETTING, "")
    return bool(token) and hmac.compare_digest(_digest(said), _digest(token))


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
