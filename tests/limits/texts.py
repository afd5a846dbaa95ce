"""A sentence that is too long to be read."""

from collections.abc import Callable

import pytest

from tests.apps import page, said


def too_long(monkeypatch: pytest.MonkeyPatch, small_models: None) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_TEXT_CHARACTERS", "2500")
    return said(page("input/tokens", model="letters", text="a" * 2_501))


MEETINGS: dict[str, Callable[..., str]] = {"text_characters": too_long}
