"""The limits of the door, met: who comes when it is full, and who says too much."""

from collections.abc import Callable

import pytest

from explorer.app.limits import SESSIONS, SESSIONS_OF_ADDRESS, Limit
from explorer.server.crowd import Crowd
from explorer.server.incoming_messages import LARGE, Messages
from tests.server.asking import Inside, ask, scope_of


def turned_away(limit: Limit, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the page says to someone new where there is room for nobody."""
    monkeypatch.setenv(f"EXPLORER_LIMIT_{limit.name.upper()}", "0")
    return ask(Crowd(Inside()), scope_of("/attention")).sentence


def meet_sessions(monkeypatch: pytest.MonkeyPatch) -> str:
    return turned_away(SESSIONS, monkeypatch)


def meet_sessions_of_address(monkeypatch: pytest.MonkeyPatch) -> str:
    return turned_away(SESSIONS_OF_ADDRESS, monkeypatch)


def meet_messages_bytes(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_MESSAGES_BYTES", str(LARGE))
    said = [b"a" * LARGE, b"a" * (LARGE + 1)]
    socket = scope_of("/_stcore/stream", kind="websocket")
    answer = ask(Messages(Inside(), lambda _: True), socket, said)
    return str(answer.sent[-1]["reason"])


MEETINGS: dict[str, Callable[..., str]] = {
    "sessions": meet_sessions,
    "sessions_of_address": meet_sessions_of_address,
    "messages_bytes": meet_messages_bytes,
}
