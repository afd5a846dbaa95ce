"""Who runs the server, from anywhere: by a token that the server was started with.

EXPLORER_ADMIN_TOKEN has it; without it nobody is let in. A reader types it into the page, so it is
in no address and no log.
"""

import hmac
import os
from hashlib import sha256
from threading import Lock

from cachetools import TTLCache

ADMIN_SETTING = "EXPLORER_ADMIN_TOKEN"
SHORTEST = 16
"""Characters; what is shorter could be guessed."""
TRIES, WAIT = 5, 60
"""Wrong tokens of one network, and the seconds after the last until another one is read."""
_wrong: TTLCache[str, int] = TTLCache(maxsize=10_000, ttl=WAIT)
_lock = Lock()


class TooManyTriesError(Exception):
    """So many wrong tokens came from a network that this one was not read."""


def is_set() -> bool:
    """Whether anybody can be let in."""
    return bool(os.environ.get(ADMIN_SETTING))


def fault() -> str | None:
    """One sentence saying what is wrong with the setting, for whoever starts the server."""
    if is_set() and len(os.environ[ADMIN_SETTING]) < SHORTEST:
        return (
            f"{ADMIN_SETTING} must have at least {SHORTEST} characters, so that nobody guesses it."
        )
    return None


def is_right(said: str, network: str) -> bool:
    """Whether this is the token; the time that it takes says nothing of how far it is right.

    TooManyTriesError after some wrong ones from this network: guessing a weak one takes long.
    """
    token = os.environ.get(ADMIN_SETTING, "")
    with _lock:
        if _wrong.get(network, 0) >= TRIES:
            raise TooManyTriesError
        found = bool(token) and hmac.compare_digest(_digest(said), _digest(token))
        if not found:
            _wrong[network] = _wrong.get(network, 0) + 1
    return found


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
