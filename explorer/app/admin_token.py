"""The token by which whoever runs the server is recognised from anywhere.

EXPLORER_ADMIN_TOKEN sets it; without it nobody is let in. A reader types it into the page, so it is
in no address and no log.
"""

import hmac
import os
from hashlib import sha256
from threading import Lock

from cachetools import TTLCache

ADMIN_SETTING = "EXPLORER_ADMIN_TOKEN"
MIN_LENGTH = 16
"""Characters; a shorter token could be guessed."""
TRIES, WAIT = 5, 60
"""Wrong tokens that one network may send, and seconds until it may send more."""
_wrong: TTLCache[str, int] = TTLCache(maxsize=10_000, ttl=WAIT)
_lock = Lock()


class TooManyTriesError(Exception):
    """The network has sent too many wrong tokens, so this one was not compared."""


def is_set() -> bool:
    """Whether anybody can be let in."""
    return bool(os.environ.get(ADMIN_SETTING))


def fault() -> str | None:
    """What is wrong with the setting, in one sentence for whoever starts the server."""
    if is_set() and len(os.environ[ADMIN_SETTING]) < MIN_LENGTH:
        return f"{ADMIN_SETTING} needs {MIN_LENGTH} characters or more, so that nobody guesses it."
    return None


def is_right(typed: str, network: str) -> bool:
    """Whether this is the token, compared in constant time.

    TooManyTriesError after a few wrong ones from this network, so that guessing takes long.
    """
    token = os.environ.get(ADMIN_SETTING, "")
    with _lock:
        if _wrong.get(network, 0) >= TRIES:
            raise TooManyTriesError
        matches = bool(token) and hmac.compare_digest(_digest(typed), _digest(token))
        if not matches:
            _wrong[network] = _wrong.get(network, 0) + 1
    return matches


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
