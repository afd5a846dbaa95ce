"""The limits of the door, met: who comes when it is full."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from explorer.app.limits import SESSIONS, SESSIONS_OF_ADDRESS, Limit
from explorer.server.crowd import Crowd
from tests.server.asking import Inside, ask, scope_of


def turned_away(limit: Limit, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the page says to someone new where there is room for nobody."""
    monkeypatch.setenv(f"EXPLORER_LIMIT_{limit.name.upper()}", "0")
    return ask(Crowd(Inside()), scope_of("/attention")).sentence


def meet_sessions(monkeypatch: pytest.MonkeyPatch) -> str:
    return turned_away(SESSIONS, monkeypatch)


def meet_sessions_of_address(monkeypatch: pytest.MonkeyPatch) -> str:
    return turned_away(SESSIONS_OF_ADDRESS, monkeypatch)


MEETINGS: dict[str, Callable[..., str]] = {
    "sessions": meet_sessions,
    "sessions_of_address": meet_sessions_of_address,
}
