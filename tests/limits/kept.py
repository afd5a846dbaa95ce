"""The limits of a kept session, met: too many views, too large ones, too large a file."""

import pytest
import torch

from explorer.app.kept_session import KeptSessions
from explorer.export.figure_data import FigureData
from explorer.export.kept_view import KeptView
from explorer.export.offline_page import OfflinePicture
from explorer.export.session_page import refusal

FIGURE = FigureData(torch.eye(40), ("a",) * 40, ("b",) * 40, "Identity")
VIEW = KeptView("Identity", "/attention", figures=[FIGURE])
DRAWN = KeptView("Identity", "/attention", drawn=[OfflinePicture("", bytes(2_000))])


def added(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is said of another view where none may be kept."""
    monkeypatch.setenv(f"EXPLORER_LIMIT_{name.upper()}", "0")
    kept = KeptSessions()
    said = kept.add("reader", VIEW)
    assert kept.of("reader") is None
    return said


def meet_views(monkeypatch: pytest.MonkeyPatch) -> str:
    return added("kept_views", monkeypatch)


def meet_bytes(monkeypatch: pytest.MonkeyPatch) -> str:
    return added("kept_bytes_of_reader", monkeypatch)


def meet_file(monkeypatch: pytest.MonkeyPatch) -> str:
    """The sentence names the largest view, and how large it is."""
    monkeypatch.setenv("EXPLORER_LIMIT_SESSION_FILE_BYTES", "1000")
    said = refusal([DRAWN])
    assert "“Identity”" in said
    return said


MEETINGS = {
    "kept_views": meet_views,
    "kept_bytes_of_reader": meet_bytes,
    "session_file_bytes": meet_file,
}
